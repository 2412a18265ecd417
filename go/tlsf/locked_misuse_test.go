package tlsf_test

// Misuse of the allocators for goroutines: refused as Heap refuses it, and nothing changes.

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/freestone-alloc/freestone/go/tlsf"
)

// blocksOf is where an allocator's blocks are and how large they are.
func blocksOf(a allocator) [][3]int64 {
	var all [][3]int64
	for _, leak := range a.Leaks() {
		all = append(all, [3]int64{int64(leak.Region), int64(leak.Offset), int64(leak.Capacity)})
	}
	return all
}

func TestMisuseOfAnAllocatorForGoroutinesIsRefusedAndChangesNothing(t *testing.T) {
	other := newHeap(t, 1<<14)
	foreign := mustAlloc(t, other, 100)
	eachAllocator(t, 1<<14, func(t *testing.T, a allocator) {
		used, freed, behind := mustAlloc(t, a, 100), mustAlloc(t, a, 200), mustAlloc(t, a, 50)
		if err := a.Free(freed); err != nil {
			t.Fatal(err)
		}
		before, blocks := a.Stats(), blocksOf(a)
		for _, c := range []struct {
			name string
			b    []byte
			want error
		}{
			{"from Go's heap", make([]byte, 100), tlsf.ErrForeign},
			{"of another allocator", foreign, tlsf.ErrForeign},
			{"empty, from nowhere", []byte{}, tlsf.ErrForeign},
			{"resliced at the front", used[16:], tlsf.ErrResliced},
			{"with less capacity", used[:10:20], tlsf.ErrResliced},
			{"already freed", freed, tlsf.ErrDoubleFree},
		} {
			t.Run(c.name, func(t *testing.T) {
				wantError(t, a.Free(c.b), c.want)
				_, err := a.Realloc(c.b, 10)
				wantError(t, err, c.want)
			})
		}
		for n, want := range map[int]error{
			0: tlsf.ErrInvalidSize, -1: tlsf.ErrInvalidSize, math.MinInt: tlsf.ErrInvalidSize,
			1 << 14: tlsf.ErrTooLarge, math.MaxInt: tlsf.ErrTooLarge,
		} {
			for name, alloc := range map[string]func() ([]byte, error){
				"Alloc":        func() ([]byte, error) { return a.Alloc(n) },
				"AllocAligned": func() ([]byte, error) { return a.AllocAligned(n, 64) },
				"AllocZeroed":  func() ([]byte, error) { return a.AllocZeroed(n) },
				"AllocContext": func() ([]byte, error) { return a.AllocContext(context.Background(), n) }, // does not wait
				"Realloc":      func() ([]byte, error) { return a.Realloc(used, n) },
			} {
				t.Run(name, func(t *testing.T) {
					_, err := alloc()
					wantError(t, err, want)
				})
			}
		}
		if err := a.Check(); err != nil || a.Stats() != before || !slices.Equal(blocksOf(a), blocks) {
			t.Fatalf("%v\n%v\n%v", err, before, a.Stats())
		}
		for _, b := range [][]byte{used, behind, nil} {
			if err := a.Free(b); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestEveryUseOfAnAllocatorForGoroutinesAfterCloseIsRefused(t *testing.T) {
	eachAllocator(t, 1<<14, func(t *testing.T, a allocator) {
		b := mustAlloc(t, a, 100)
		if err := a.Free(b); err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		for name, call := range map[string]func() error{
			"Alloc":        func() error { _, err := a.Alloc(1); return err },
			"AllocAligned": func() error { _, err := a.AllocAligned(1, 64); return err },
			"AllocZeroed":  func() error { _, err := a.AllocZeroed(1); return err },
			"AllocContext": func() error { _, err := a.AllocContext(context.Background(), 1); return err },
			"Realloc":      func() error { _, err := a.Realloc(b, 1); return err },
			"Free":         func() error { return a.Free(b) },
			"Check":        a.Check,
			"Close":        a.Close,
		} {
			t.Run(name, func(t *testing.T) { wantError(t, call(), tlsf.ErrClosed) })
		}
	})
}
