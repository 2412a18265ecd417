package tlsf_test

// Every kind of misuse of a heap: the error names it, and nothing changes.

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/freestone-alloc/freestone/go/tlsf"
)

// newHeap is a heap of n bytes that must be sound at the end of the test.
func newHeap(t testing.TB, n int, options ...tlsf.Option) *tlsf.Heap {
	t.Helper()
	h, err := tlsf.New(alignedRegion(n, n), options...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func mustAlloc(t testing.TB, h interface{ Alloc(int) ([]byte, error) }, n int) []byte {
	t.Helper()
	b, err := h.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
	var typed *tlsf.Error
	if !errors.As(err, &typed) || typed.Op == "" || !strings.HasPrefix(err.Error(), "tlsf: ") {
		t.Fatalf("%v (%T) does not say what failed", err, err)
	}
}

// unchanged runs misuse and expects a sound heap with the same contents afterwards.
func unchanged(t *testing.T, h *tlsf.Heap, misuse func()) {
	t.Helper()
	blocks, stats := slices.Collect(h.Blocks()), h.Stats()
	misuse()
	if err := h.Check(); err != nil {
		t.Fatal(err)
	}
	if after := slices.Collect(h.Blocks()); !slices.Equal(blocks, after) {
		t.Fatalf("blocks changed:\n%v\n%v", blocks, after)
	}
	if h.Stats() != stats {
		t.Fatalf("statistics changed:\n%v\n%v", stats, h.Stats())
	}
}

func TestAnInvalidFreeIsReportedAndChangesNothing(t *testing.T) {
	h, other := newHeap(t, 1<<14), newHeap(t, 1<<14)
	inner, err := tlsf.New(mustAlloc(t, h, 4096))
	if err != nil {
		t.Fatal(err)
	}
	used := mustAlloc(t, h, 100)
	freed, behind := mustAlloc(t, h, 200), mustAlloc(t, h, 50)
	foreign, nested := mustAlloc(t, other, 100), mustAlloc(t, inner, 100)
	if err := h.Free(freed); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		b    []byte
		want error
	}{
		{"from Go's heap", make([]byte, 100), tlsf.ErrForeign},
		{"of another allocator", foreign, tlsf.ErrForeign},
		{"empty, from nowhere", []byte{}, tlsf.ErrForeign},
		{"of a heap inside a block of this one", nested, tlsf.ErrResliced},
		{"resliced at the front by a byte", used[1:], tlsf.ErrResliced},
		{"resliced at the front by a granule", used[16:], tlsf.ErrResliced},
		{"resliced to its end", used[len(used):], tlsf.ErrResliced},
		{"with less capacity", used[:10:20], tlsf.ErrResliced},
		{"with no capacity", used[:0:0], tlsf.ErrResliced},
		{"already freed", freed, tlsf.ErrDoubleFree},
		{"inside memory that is free", freed[32:], tlsf.ErrDoubleFree},
	} {
		t.Run(c.name, func(t *testing.T) {
			unchanged(t, h, func() {
				wantError(t, h.Free(c.b), c.want)
				_, err := h.Realloc(c.b, 10)
				wantError(t, err, c.want)
				_, err = h.Offset(c.b)
				wantError(t, err, c.want)
			})
		})
	}
	if err := errors.Join(h.Free(used[:3]), h.Free(behind), h.Free(nil)); err != nil {
		t.Fatal(err)
	}
}

func TestAnInvalidFreeOnTheHotPathIsReportedToo(t *testing.T) {
	h := newHeap(t, 1<<14)
	b := mustAlloc(t, h, 1000)
	for k := range b {
		b[k] = 0xff
	}
	unchanged(t, h, func() {
		wantError(t, h.Free(b[16:]), tlsf.ErrResliced)
		wantError(t, h.Free(b[:16:16]), tlsf.ErrResliced)
	})
	if err := h.Free(b); err != nil {
		t.Fatal(err)
	}
	unchanged(t, h, func() { wantError(t, h.Free(b), tlsf.ErrDoubleFree) })
}

// A block may hold what looks exactly like the header of a used block of just the right size.
func TestContentsThatLookLikeAHeaderDoNotPassForABlock(t *testing.T) {
	h := newHeap(t, 1<<14)
	b := mustAlloc(t, h, 256)
	inner := b[32:]
	size := cap(inner) + 8
	b[24], b[25] = byte(size), byte(size>>8)
	for k := 26; k < 32; k++ {
		b[k] = 0
	}
	unchanged(t, h, func() { wantError(t, h.Free(inner), tlsf.ErrResliced) })
}

func TestImpossibleSizesAreRefused(t *testing.T) {
	h := newHeap(t, 4096)
	b, _ := mustAlloc(t, h, 100), mustAlloc(t, h, 1)
	for _, c := range []struct {
		n    int
		want error
	}{
		{0, tlsf.ErrInvalidSize}, {-1, tlsf.ErrInvalidSize}, {math.MinInt, tlsf.ErrInvalidSize},
		{4096, tlsf.ErrTooLarge}, {4096 - 16 - 7, tlsf.ErrTooLarge}, {math.MaxInt, tlsf.ErrTooLarge},
		{math.MaxInt - 15, tlsf.ErrTooLarge}, {4000, tlsf.ErrNoMemory},
	} {
		unchanged(t, h, func() {
			_, err := h.Alloc(c.n)
			wantError(t, err, c.want)
			_, err = h.AllocZeroed(c.n)
			wantError(t, err, c.want)
			_, err = h.Realloc(b, c.n)
			wantError(t, err, c.want)
		})
	}
}

func TestTheLargestFreeBlockCanBeAllocatedWhole(t *testing.T) {
	h := newHeap(t, 4096)
	b := mustAlloc(t, h, 4096-16-8)
	unchanged(t, h, func() {
		_, err := h.Alloc(1)
		wantError(t, err, tlsf.ErrNoMemory)
	})
	if err := h.Free(b); err != nil {
		t.Fatal(err)
	}
}

func TestInvalidAlignmentsAreRefused(t *testing.T) {
	h := newHeap(t, 4096)
	b := mustAlloc(t, h, 100)
	for _, align := range []int{0, -1, 3, 24, math.MinInt, math.MaxInt} {
		unchanged(t, h, func() {
			_, err := h.AllocAligned(10, align)
			wantError(t, err, tlsf.ErrInvalidAlignment)
			_, err = h.ReallocAligned(b, 10, align)
			wantError(t, err, tlsf.ErrInvalidAlignment)
		})
	}
	unchanged(t, h, func() {
		_, err := h.AllocAligned(10, 1<<30)
		wantError(t, err, tlsf.ErrTooLarge)
		_, err = h.AllocAligned(0, 64)
		wantError(t, err, tlsf.ErrInvalidSize)
	})
}

func TestInvalidRegionsAreRefused(t *testing.T) {
	memory := alignedRegion(4096, 8192)
	h, err := tlsf.New(memory)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		mem  []byte
		want error
	}{
		{"nil", nil, tlsf.ErrRegionNil},
		{"empty", memory[:0], tlsf.ErrRegionTooSmall},
		{"too small", alignedRegion(47, 47), tlsf.ErrRegionTooSmall},
		{"misaligned", alignedRegion(4096, 4096)[8:], tlsf.ErrRegionMisaligned},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := tlsf.New(c.mem)
			wantError(t, err, c.want)
			_, err = tlsf.NewSharded(c.mem, 1)
			wantError(t, err, c.want)
			unchanged(t, h, func() { wantError(t, h.AddRegion(c.mem), c.want) })
		})
	}
	unchanged(t, h, func() {
		wantError(t, h.AddRegion(memory), tlsf.ErrRegionOverlap)
		wantError(t, h.AddRegion(memory[4096:8192]), tlsf.ErrRegionOverlap)
	})
	if _, err := tlsf.New(alignedRegion(48, 48)); err != nil {
		t.Errorf("the smallest region: %v", err)
	}
}

func TestInvalidGrowthIsRefused(t *testing.T) {
	h, err := tlsf.New(alignedRegion(1024, 4096))
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]error{
		0: tlsf.ErrInvalidSize, -32: tlsf.ErrInvalidSize, 16: tlsf.ErrInvalidSize, 40: tlsf.ErrInvalidSize,
		4096: tlsf.ErrTooLarge, math.MaxInt &^ 15: tlsf.ErrTooLarge,
	} {
		unchanged(t, h, func() { wantError(t, h.GrowRegion(n), want) })
	}
	_, err = h.Alloc(4096 - 16 - 8)
	wantError(t, err, tlsf.ErrNoMemory)
	_, err = h.Alloc(4096 - 16 - 7)
	wantError(t, err, tlsf.ErrTooLarge)
	if err := h.GrowRegion(3072); err != nil {
		t.Fatal(err)
	}
	wantError(t, h.GrowRegion(32), tlsf.ErrTooLarge)
}

func TestCapacityTooShortForAGrowthIsNotCounted(t *testing.T) {
	for capacity, want := range map[int]error{1024 + 47: tlsf.ErrNoMemory, 1024 + 31: tlsf.ErrTooLarge, 1024: tlsf.ErrTooLarge} {
		h, err := tlsf.New(alignedRegion(1024, capacity))
		if err != nil {
			t.Fatal(err)
		}
		_, err = h.Alloc(1024 - 16 - 8 + 32)
		wantError(t, err, want)
		if grown := h.GrowRegion(32); (grown == nil) != errors.Is(err, tlsf.ErrNoMemory) {
			t.Errorf("%d of %d bytes: %v", 1024, capacity, grown)
		}
	}
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	for _, option := range []tlsf.Option{nil, tlsf.WithCallSites(0), tlsf.WithCallSites(65)} {
		_, err := tlsf.New(make([]byte, 1024), option)
		wantError(t, err, tlsf.ErrInvalidOption)
	}
	_, err := tlsf.NewSharded(make([]byte, 1024), -1)
	wantError(t, err, tlsf.ErrInvalidOption)
}

func TestAZeroHeapHasNoBlocksAndNothingBroken(t *testing.T) {
	var h tlsf.Heap
	_, err := h.Alloc(1)
	wantError(t, err, tlsf.ErrTooLarge)
	if err := h.Check(); err != nil || len(slices.Collect(h.Blocks())) != 0 || h.Leaks() != nil {
		t.Errorf("a zero heap: %v", err)
	}
	if err := h.AddRegion(make([]byte, 1024)); err != nil {
		t.Fatal(err)
	}
	b := mustAlloc(t, &h, 100)
	if err := h.Check(); err != nil || len(slices.Collect(h.Blocks())) != 2 {
		t.Errorf("a zero heap with a region: %v", err)
	}
	if err := errors.Join(h.Free(b), h.Check(), h.Close()); err != nil {
		t.Error(err)
	}
}

func TestAnErrorOfAtHasTheOffsetThatWasPassed(t *testing.T) {
	h := newHeap(t, 4096)
	for offset, text := range map[uint64]string{
		0x20:           "at offset 0x20:",
		1<<48 | 0x10:   "at offset 0x1000000000010:",
		1 << 63:        "no used block starts at 0x8000000000000000",
		math.MaxUint64: "no used block starts at 0xffffffffffffffff",
	} {
		_, err := h.At(offset)
		wantError(t, err, tlsf.ErrForeign)
		var e *tlsf.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), text) || e.Offset != max(int64(offset), -1) {
			t.Errorf("At(%#x): %v", offset, err)
		}
	}
}

func TestEveryUseAfterCloseIsRefused(t *testing.T) {
	h := newHeap(t, 4096)
	b := mustAlloc(t, h, 100)
	wantError(t, h.FreeSized(&b[0], 5000), tlsf.ErrResliced)
	err := h.Close()
	var leak *tlsf.LeakError
	if !errors.Is(err, tlsf.ErrLeak) || !errors.As(err, &leak) || len(leak.Leaks) != 1 || leak.Leaks[0].Capacity != 104 {
		t.Fatalf("Close with a block in use: %v", err)
	}
	calls := map[string]func() error{
		"Alloc":        func() error { _, err := h.Alloc(1); return err },
		"AllocAligned": func() error { _, err := h.AllocAligned(1, 64); return err },
		"Free":         func() error { return h.Free(b) },
		"FreeSized":    func() error { return h.FreeSized(&b[0], 100) },
		"Realloc":      func() error { _, err := h.Realloc(b, 1); return err },
		"Realloc nil":  func() error { _, err := h.Realloc(nil, 1); return err },
		"GrowRegion":   func() error { return h.GrowRegion(32) },
		"AddRegion":    func() error { return h.AddRegion(make([]byte, 1024)) },
		"Offset":       func() error { _, err := h.Offset(b); return err },
		"At":           func() error { _, err := h.At(16); return err },
		"Check":        h.Check,
		"Close":        h.Close,
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, tlsf.ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
	if h.Leaks() != nil || h.Stats() != (tlsf.Stats{}) || len(slices.Collect(h.Blocks())) != 0 {
		t.Error("a closed heap still shows blocks")
	}
}
