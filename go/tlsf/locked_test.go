package tlsf_test

// Goroutines: exclusion, the cap, waiting. None of these tests depends on timing: a test that must know that
// another goroutine waits reads the queue's length.

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/freestone-alloc/freestone/go/tlsf"
)

// allocator is the interface that Locked and Sharded share.
type allocator interface {
	Alloc(n int) ([]byte, error)
	AllocAligned(n, align int) ([]byte, error)
	AllocZeroed(n int) ([]byte, error)
	AllocContext(ctx context.Context, n int) ([]byte, error)
	Realloc(b []byte, n int) ([]byte, error)
	Free(b []byte) error
	Stats() tlsf.Stats
	Check() error
	Leaks() []tlsf.Leak
	Close() error
	Waiting() int
}

// eachAllocator runs test with a Locked and with a Sharded over n bytes. With one shard, the cap is the same.
func eachAllocator(t *testing.T, n int, test func(*testing.T, allocator)) {
	t.Run("locked", func(t *testing.T) { test(t, tlsf.NewLocked(newHeap(t, n))) })
	for _, shards := range []int{1, 4} {
		s, err := tlsf.NewSharded(alignedRegion(n*shards, n*shards), shards)
		if err != nil {
			t.Fatal(err)
		}
		t.Run("sharded", func(t *testing.T) { test(t, s) })
	}
}

// fillUp takes blocks of size bytes until the cap.
func fillUp(t *testing.T, a allocator, size int) [][]byte {
	t.Helper()
	var all [][]byte
	for {
		b, err := a.Alloc(size)
		if err != nil {
			wantError(t, err, tlsf.ErrNoMemory)
			return all
		}
		all = append(all, b)
	}
}

func waitForWaiters(a allocator, n int) {
	for a.Waiting() != n {
		runtime.Gosched()
	}
}

func TestManyGoroutinesShareAnAllocator(t *testing.T) {
	rounds := 20_000
	if testing.Short() || raceEnabled {
		rounds = 2_000
	}
	eachAllocator(t, 1<<18, func(t *testing.T, a allocator) {
		handed := make(chan []byte, 64) // blocks freed by another goroutine
		var group sync.WaitGroup
		for id := range 4 {
			group.Add(1)
			go func() {
				defer group.Done()
				churn(t, a, handed, rounds, byte(id))
			}()
		}
		group.Wait()
		close(handed)
		for b := range handed {
			if err := a.Free(b); err != nil {
				t.Error(err)
			}
		}
		if err := errors.Join(a.Check(), a.Close()); err != nil {
			t.Error(err)
		}
	})
}

// churn allocates, fills, reallocates and frees; every third block is passed to another goroutine.
func churn(t *testing.T, a allocator, handed chan []byte, rounds int, id byte) {
	rng := rand.New(rand.NewPCG(uint64(id), 1))
	for n := range rounds {
		b, err := a.AllocAligned(1+rng.IntN(2000), 16<<rng.IntN(3))
		if err != nil {
			if !errors.Is(err, tlsf.ErrNoMemory) {
				t.Error(err)
			}
			continue
		}
		for k := range b {
			b[k] = id
		}
		if n%5 == 0 {
			if grown, err := a.Realloc(b, len(b)+300); err == nil {
				b = grown[:len(b)]
			}
		}
		for _, x := range b {
			if x != id {
				t.Error("another goroutine wrote into this block")
				return
			}
		}
		if n%3 == 0 {
			select {
			case handed <- b:
				continue
			case other := <-handed:
				if err := a.Free(other); err != nil {
					t.Error(err)
				}
			default:
			}
		}
		if err := a.Free(b); err != nil {
			t.Error(err)
		}
	}
}

func TestTheRegionIsAHardCap(t *testing.T) {
	eachAllocator(t, 1<<14, func(t *testing.T, a allocator) {
		all := fillUp(t, a, 1000)
		before := a.Stats()
		_, err := a.Alloc(1000)
		wantError(t, err, tlsf.ErrNoMemory)
		_, err = a.Realloc(all[0], 5000)
		wantError(t, err, tlsf.ErrNoMemory)
		if a.Stats() != before || before.UsedBytes > before.RegionBytes || len(all) != len(a.Leaks()) {
			t.Fatal(a.Stats(), before)
		}
		for _, b := range all {
			if err := a.Free(b); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
