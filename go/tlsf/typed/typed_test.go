package typed_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/freestone-alloc/freestone/go/tlsf"
	"github.com/freestone-alloc/freestone/go/tlsf/typed"
)

type vertex struct {
	X, Y, Z float32
	Next    uint64 // an offset
	Flags   [3]bool
}

func newHeap(t *testing.T) *tlsf.Heap {
	h, err := tlsf.New(make([]byte, 1<<16))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// dirty leaves bytes behind that are not zero.
func dirty(t *testing.T, h *tlsf.Heap) {
	b, err := h.Alloc(1 << 15)
	if err != nil {
		t.Fatal(err)
	}
	for k := range b {
		b[k] = 0xff
	}
	if err := h.Free(b); err != nil {
		t.Fatal(err)
	}
}

func TestValuesAreZeroedAndFreed(t *testing.T) {
	h := newHeap(t)
	dirty(t, h)
	v, err := typed.New[vertex](h)
	if err != nil || *v != (vertex{}) {
		t.Fatal(v, err)
	}
	if uintptr(unsafe.Pointer(v))%unsafe.Alignof(*v) != 0 {
		t.Fatal("misaligned")
	}
	*v = vertex{X: 1, Next: math.MaxUint64}
	if err := typed.Free(h, v); err != nil {
		t.Fatal(err)
	}
	if err := typed.Free(h, v); !errors.Is(err, tlsf.ErrDoubleFree) {
		t.Fatalf("second Free: %v", err)
	}
	if err := errors.Join(typed.Free(h, (*vertex)(nil)), typed.Free(h, new(vertex))); !errors.Is(err, tlsf.ErrForeign) {
		t.Fatal(err)
	}
	if err := errors.Join(h.Check(), h.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestSlicesAreZeroedHaveTheirCapacityAndAreFreed(t *testing.T) {
	h := newHeap(t)
	dirty(t, h)
	s, err := typed.MakeSlice[vertex](h, 3, 10)
	if err != nil || len(s) != 3 || cap(s) != 10 {
		t.Fatal(len(s), cap(s), err)
	}
	for _, v := range s[:10] {
		if v != (vertex{}) {
			t.Fatal(v)
		}
	}
	s = append(s, vertex{X: 1})
	if &s[0] != &s[:1][0] || len(h.Leaks()) != 1 {
		t.Fatal("an append within the capacity moved")
	}
	for _, wrong := range [][]vertex{s[1:], s[:2:2], make([]vertex, 10)} {
		if err := typed.FreeSlice(h, wrong); err == nil {
			t.Fatal("freed what is not the whole slice")
		}
	}
	if err := errors.Join(typed.FreeSlice(h, s[:1]), h.Check(), h.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestASliceOfNoCapacityTakesNoMemory(t *testing.T) {
	h := newHeap(t)
	s, err := typed.MakeSlice[int](h, 0, 0)
	if err != nil || s == nil || len(h.Leaks()) != 0 {
		t.Fatal(s, err)
	}
	if err := errors.Join(typed.FreeSlice(h, s), typed.FreeSlice[int](h, nil)); err != nil {
		t.Fatal(err)
	}
}

func TestImpossibleSlicesAreRefused(t *testing.T) {
	h := newHeap(t)
	for _, c := range []struct {
		length, capacity int
		want             error
	}{
		{-1, 5, tlsf.ErrInvalidSize}, {6, 5, tlsf.ErrInvalidSize}, {0, -1, tlsf.ErrInvalidSize},
		{0, math.MaxInt, tlsf.ErrTooLarge}, {0, math.MaxInt/8 + 1, tlsf.ErrTooLarge}, {0, 1 << 20, tlsf.ErrTooLarge},
	} {
		if _, err := typed.MakeSlice[uint64](h, c.length, c.capacity); !errors.Is(err, c.want) {
			t.Errorf("MakeSlice(%d, %d): %v", c.length, c.capacity, err)
		}
	}
	if _, err := typed.New[struct{}](h); !errors.Is(err, tlsf.ErrInvalidSize) {
		t.Errorf("a type of no size: %v", err)
	}
	if err := h.Check(); err != nil || len(h.Leaks()) != 0 {
		t.Fatal(err, h.Leaks())
	}
}

type withPointer struct {
	A     int
	Inner struct{ Deep [2]struct{ P *int } }
}

func TestTypesThatHoldGoPointersAreRefused(t *testing.T) {
	h := newHeap(t)
	refused := map[string]error{}
	note := func(name string, err error) { refused[name] = err }
	_, err := typed.New[*int](h)
	note("*int", err)
	_, err = typed.New[string](h)
	note("string", err)
	_, err = typed.New[[]byte](h)
	note("slice", err)
	_, err = typed.New[map[int]int](h)
	note("map", err)
	_, err = typed.New[chan int](h)
	note("chan", err)
	_, err = typed.New[func()](h)
	note("func", err)
	_, err = typed.New[any](h)
	note("interface", err)
	_, err = typed.New[unsafe.Pointer](h)
	note("unsafe.Pointer", err)
	_, err = typed.MakeSlice[withPointer](h, 1, 1)
	note("nested", err)
	for name, err := range refused {
		if !errors.Is(err, tlsf.ErrHoldsPointers) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text := refused["nested"].Error(); !strings.Contains(text, "withPointer.Inner.Deep[0].P is a ptr") {
		t.Error(text)
	}
	if p, err := typed.New[struct {
		U uintptr
		N [0]*int
		C complex128
	}](h); err != nil || p == nil {
		t.Error(err)
	}
}

func TestStringsAreCopiedAndFreed(t *testing.T) {
	h := newHeap(t)
	source := []byte("a text of some length")
	s, err := typed.CloneString(h, string(source))
	if err != nil || s != string(source) {
		t.Fatal(s, err)
	}
	if err := typed.FreeString(h, s[2:]); !errors.Is(err, tlsf.ErrResliced) {
		t.Fatalf("part of a string: %v", err)
	}
	if err := typed.FreeString(h, "a literal"); !errors.Is(err, tlsf.ErrForeign) {
		t.Fatalf("a literal: %v", err)
	}
	if err := typed.FreeString(h, s); err != nil {
		t.Fatal(err)
	}
	empty, err := typed.CloneString(h, "")
	if err := errors.Join(err, typed.FreeString(h, empty), h.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestAPartThatHasTheSameBlockSizeFreesTheWholeBlock(t *testing.T) {
	h := newHeap(t)
	text, err := typed.CloneString(h, strings.Repeat("text", 50))
	if err != nil {
		t.Fatal(err)
	}
	if err := typed.FreeString(h, text[:100]); !errors.Is(err, tlsf.ErrResliced) {
		t.Fatalf("half of a string: %v", err)
	}
	s, err := typed.MakeSlice[byte](h, 30, 30)
	if err := errors.Join(err, typed.FreeString(h, text[:len(text)-1]), typed.FreeSlice(h, s[:29:29]), h.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestTypedCallsAllocateNothingOnGosHeap(t *testing.T) {
	h := newHeap(t)
	if n := testing.AllocsPerRun(100, func() {
		v, err := typed.New[vertex](h)
		if err != nil {
			t.Error(err)
		}
		s, err := typed.MakeSlice[uint32](h, 10, 20)
		if err := errors.Join(err, typed.Free(h, v), typed.FreeSlice(h, s)); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
