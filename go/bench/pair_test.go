// Package bench compares the heap with the allocators that Go has. `bench.sh` runs it in interleaved rounds and
// draws the result; a plain `go test -bench .` works too.
//
// Experiment A is BenchmarkPair: one block is allocated and freed, at 1, 10, 100 and 500 KiB. Its contents are not accessed:
// the time is the allocator's, and for make also that of clearing and collecting.
package bench

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/freestone-alloc/freestone/go/tlsf"
	"github.com/freestone-alloc/freestone/go/tlsf/mmap"
)

var sizes = []struct {
	name  string
	bytes int
}{{"1KiB", 1 << 10}, {"10KiB", 10 << 10}, {"100KiB", 100 << 10}, {"500KiB", 500 << 10}}

// regionBytes is the memory of each heap under test.
const regionBytes = 64 << 20

// region is off-heap memory for one benchmark.
func region(b *testing.B) []byte {
	b.Helper()
	r, err := mmap.Map(regionBytes, regionBytes)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := r.Close(); err != nil {
			b.Error(err)
		}
	})
	return r.Bytes()
}

func newHeap(b *testing.B) *tlsf.Heap {
	b.Helper()
	h, err := tlsf.New(region(b))
	if err != nil {
		b.Fatal(err)
	}
	return h
}

func newSharded(b *testing.B) *tlsf.Sharded {
	b.Helper()
	s, err := tlsf.NewSharded(region(b), 0)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// sink keeps the compiler from removing the call of make.
var sink []byte

// arenaPair is the loop for arena.MakeSlice; nil unless built with GOEXPERIMENT=arenas.
var arenaPair func(b *testing.B, n int)

func BenchmarkPair(b *testing.B) {
	for _, size := range sizes {
		n := size.bytes
		if arenaPair != nil {
			b.Run("alloc=arena/size="+size.name, func(b *testing.B) { arenaPair(b, n) })
		}
		b.Run("alloc=make/size="+size.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sink = make([]byte, n)
			}
			sink = nil
		})
		b.Run("alloc=sync.Pool/size="+size.name, func(b *testing.B) {
			pool := sync.Pool{New: func() any { x := make([]byte, n); return &x }}
			b.ReportAllocs()
			for b.Loop() {
				pool.Put(pool.Get().(*[]byte))
			}
		})
		b.Run("alloc=tlsf/size="+size.name, func(b *testing.B) {
			h := newHeap(b)
			b.ReportAllocs()
			for b.Loop() {
				x, err := h.Alloc(n)
				if err != nil {
					b.Fatal(err)
				}
				if err := h.Free(x); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("alloc=locked/size="+size.name, func(b *testing.B) { pairs(b, tlsf.NewLocked(newHeap(b)), n) })
		b.Run("alloc=sharded/size="+size.name, func(b *testing.B) { pairs(b, newSharded(b), n) })
	}
}

type pairer interface {
	Alloc(n int) ([]byte, error)
	Free(b []byte) error
}

// pairs is the loop of BenchmarkPair for the allocators with a lock.
func pairs(b *testing.B, a pairer, n int) {
	b.ReportAllocs()
	for b.Loop() {
		x, err := a.Alloc(n)
		if err != nil {
			b.Fatal(err)
		}
		if err := a.Free(x); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAlternating is BenchmarkPair of the heap with two sizes in turn, so that no search can reuse the last result.
func BenchmarkAlternating(b *testing.B) {
	h, n, other := newHeap(b), sizes[0].bytes, sizes[3].bytes
	b.ReportAllocs()
	for b.Loop() {
		x, err := h.Alloc(n)
		if err != nil {
			b.Fatal(err)
		}
		if err := h.Free(x); err != nil {
			b.Fatal(err)
		}
		n, other = other, n
	}
}

// BenchmarkVaried allocates and frees blocks of random sizes among 400 others, in random order.
// One operation is an allocation or a free.
func BenchmarkVaried(b *testing.B) {
	for _, c := range []struct {
		name string
		low  uint32
		mask uint32
	}{{"16B-1KiB", 16, 1<<10 - 1}, {"16B-4KiB", 16, 1<<12 - 1}, {"1KiB-64KiB", 1 << 10, 1<<16 - 1}} {
		b.Run("alloc=tlsf/sizes="+c.name, func(b *testing.B) {
			h := newHeap(b)
			var slots [400][]byte
			b.ReportAllocs()
			for r := uint32(1); b.Loop(); {
				r ^= r << 13
				r ^= r >> 17
				r ^= r << 5
				slot := &slots[r%400]
				var err error
				if *slot != nil {
					err, *slot = h.Free(*slot), nil
				} else {
					*slot, err = h.Alloc(int(c.low + r>>12&c.mask))
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("alloc=make/sizes="+c.name, func(b *testing.B) {
			var slots [400][]byte
			b.ReportAllocs()
			for r := uint32(1); b.Loop(); {
				r ^= r << 13
				r ^= r >> 17
				r ^= r << 5
				if slot := &slots[r%400]; *slot != nil {
					*slot = nil
				} else {
					*slot = make([]byte, c.low+r>>12&c.mask)
				}
			}
		})
	}
}

// BenchmarkGoroutines has several goroutines allocate and free 10 KiB at once. ns/op is elapsed time divided by all pairs: it halves
// when a second goroutine doubles the work done. "own" has a heap for each goroutine: the best that the machine allows.
func BenchmarkGoroutines(b *testing.B) {
	for _, n := range []int{1, 2} {
		b.Run(fmt.Sprintf("alloc=own/goroutines=%d", n), func(b *testing.B) {
			var own []pairer
			for range n {
				own = append(own, newHeap(b))
			}
			concurrently(b, own)
		})
		b.Run(fmt.Sprintf("alloc=locked/goroutines=%d", n), func(b *testing.B) {
			concurrently(b, slices.Repeat([]pairer{tlsf.NewLocked(newHeap(b))}, n))
		})
		b.Run(fmt.Sprintf("alloc=sharded/goroutines=%d", n), func(b *testing.B) {
			concurrently(b, slices.Repeat([]pairer{newSharded(b)}, n))
		})
	}
}

// concurrently runs b.N pairs, shared between one goroutine for each allocator of the list.
func concurrently(b *testing.B, allocators []pairer) {
	b.ReportAllocs()
	b.ResetTimer()
	var group sync.WaitGroup
	for _, a := range allocators {
		group.Add(1)
		go func() {
			defer group.Done()
			for range b.N / len(allocators) {
				x, err := a.Alloc(10 << 10)
				if err == nil {
					err = a.Free(x)
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		}()
	}
	group.Wait()
}
