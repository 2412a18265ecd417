package mmap_test

import (
	"errors"
	"testing"

	"github.com/freestone-alloc/freestone/go/tlsf"
	"github.com/freestone-alloc/freestone/go/tlsf/mmap"
)

func TestARegionIsZeroedAndWritable(t *testing.T) {
	r, err := mmap.Map(1<<16, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	b := r.Bytes()
	if len(b) != 1<<16 || cap(b) != 1<<20 {
		t.Fatalf("length %d, capacity %d", len(b), cap(b))
	}
	for _, x := range b {
		if x != 0 {
			t.Fatal("not zero")
		}
	}
	b[:cap(b)][cap(b)-1] = 1
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestInvalidSizesAreRefused(t *testing.T) {
	for _, c := range [][2]int{{0, 0}, {-1, 10}, {10, 9}, {0, 10}} {
		if _, err := mmap.Map(c[0], c[1]); !errors.Is(err, mmap.ErrInvalidSize) {
			t.Errorf("Map(%d, %d): %v", c[0], c[1], err)
		}
	}
}

func TestASecondCloseIsAnError(t *testing.T) {
	r, err := mmap.Map(4096, 4096)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); !errors.Is(err, mmap.ErrClosed) {
		t.Fatalf("second Close: %v", err)
	}
	if r.Bytes() != nil {
		t.Fatal("memory after Close")
	}
}

func TestAMappingBeyondTheAddressSpaceFails(t *testing.T) {
	if !mmap.OffHeap {
		t.Skip("regions come from Go's heap here")
	}
	const maxInt = int(^uint(0) >> 1)
	for range 4 { // four halves of a 32-bit address space
		r, err := mmap.Map(1, maxInt-4096)
		if err != nil {
			return
		}
		defer r.Close()
	}
	t.Fatal("mapped more than there is")
}

func TestAHeapGrowsThroughItsRegionsCapacity(t *testing.T) {
	r, err := mmap.Map(1<<16, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h, err := tlsf.New(r.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Alloc(1 << 17); !errors.Is(err, tlsf.ErrNoMemory) {
		t.Fatalf("before growing: %v", err)
	}
	if _, err := h.Alloc(1 << 20); !errors.Is(err, tlsf.ErrTooLarge) {
		t.Fatalf("more than the capacity: %v", err)
	}
	if err := h.GrowRegion(1 << 18); err != nil {
		t.Fatal(err)
	}
	b, err := h.Alloc(1 << 17)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(h.Free(b), h.Check(), h.Close()); err != nil {
		t.Fatal(err)
	}
}
