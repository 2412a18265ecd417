package tlsf_test

// Goroutines: exclusion, the cap, waiting. None of these tests depends on timing: where one must know that
// another goroutine waits, it asks the queue.

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/freestone-alloc/freestone/go/internal/raw"
	"github.com/freestone-alloc/freestone/go/tlsf"
)

// allocator is what Locked and Sharded have in common.
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

// churn allocates, fills, reallocates and frees; every third block is handed to whoever takes it.
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

func TestAnAllocationThatWaitsGetsWhatIsFreed(t *testing.T) {
	eachAllocator(t, 1<<14, func(t *testing.T, a allocator) {
		all := fillUp(t, a, 1000)
		got := make(chan error)
		for range 3 {
			go func() {
				_, err := a.AllocContext(context.Background(), 1000)
				got <- err
			}()
		}
		waitForWaiters(a, 3)
		for n := range 3 {
			if err := a.Free(all[n]); err != nil {
				t.Fatal(err)
			}
			if err := <-got; err != nil {
				t.Fatal(err)
			}
		}
		if a.Waiting() != 0 {
			t.Fatalf("%d still wait", a.Waiting())
		}
	})
}

func TestALargeRequestIsNotStarvedBySmallOnes(t *testing.T) {
	l := tlsf.NewLocked(newHeap(t, 1<<14))
	all := fillUp(t, l, 1000)
	large := make(chan error)
	go func() {
		_, err := l.AllocContext(context.Background(), 4000)
		large <- err
	}()
	waitForWaiters(l, 1)
	small := make(chan error, 1)
	go func() {
		_, err := l.AllocContext(context.Background(), 1000)
		small <- err
	}()
	waitForWaiters(l, 2)
	for n := range 3 { // enough for the small one, which came later
		if err := l.Free(all[n]); err != nil {
			t.Fatal(err)
		}
	}
	if l.Waiting() != 2 {
		t.Fatal("the small request went first")
	}
	for n := 3; n < 6; n++ {
		if err := l.Free(all[n]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(<-large, <-small); err != nil {
		t.Fatal(err)
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	eachAllocator(t, 1<<14, func(t *testing.T, a allocator) {
		fillUp(t, a, 1000)
		ctx, cancel := context.WithCancel(context.Background())
		got := make(chan error)
		go func() {
			_, err := a.AllocContext(ctx, 1000)
			got <- err
		}()
		waitForWaiters(a, 1)
		cancel()
		err := <-got
		wantError(t, err, context.Canceled)
		wantError(t, err, tlsf.ErrNoMemory)
		_, err = a.AllocContext(ctx, 1)
		wantError(t, err, context.Canceled)
		_, err = a.AllocContext(context.Background(), 1<<20)
		wantError(t, err, tlsf.ErrTooLarge)
		_, err = a.AllocContext(context.Background(), 0)
		wantError(t, err, tlsf.ErrInvalidSize)
		if a.Waiting() != 0 {
			t.Fatal("a waiter was left behind")
		}
	})
}

func TestCloseEndsEveryWait(t *testing.T) {
	eachAllocator(t, 1<<14, func(t *testing.T, a allocator) {
		fillUp(t, a, 1000)
		got := make(chan error)
		for range 3 {
			go func() {
				_, err := a.AllocContext(context.Background(), 1000)
				got <- err
			}()
		}
		waitForWaiters(a, 3)
		if err := a.Close(); !errors.Is(err, tlsf.ErrLeak) {
			t.Fatal(err)
		}
		for range 3 {
			wantError(t, <-got, tlsf.ErrClosed)
		}
		if err := a.Close(); !errors.Is(err, tlsf.ErrClosed) {
			t.Fatal(err)
		}
		_, err := a.AllocZeroed(1)
		wantError(t, err, tlsf.ErrClosed)
	})
}

func TestManyWaitersAtTheCapAllGetTheirTurn(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 50
	}
	eachAllocator(t, 1<<13, func(t *testing.T, a allocator) {
		var group sync.WaitGroup
		for id := range 8 {
			group.Add(1)
			go func() {
				defer group.Done()
				rng := rand.New(rand.NewPCG(uint64(id), 2))
				for range rounds {
					b, err := a.AllocContext(context.Background(), 1+rng.IntN(7000))
					if err != nil {
						t.Error(err)
						return
					}
					runtime.Gosched()
					if err := a.Free(b); err != nil {
						t.Error(err)
						return
					}
				}
			}()
		}
		group.Wait()
		if err := errors.Join(a.Check(), a.Close()); err != nil {
			t.Error(err)
		}
	})
}

func TestGrowingALockedHeapHelpsWaiters(t *testing.T) {
	h, err := tlsf.New(alignedRegion(1<<12, 1<<14))
	if err != nil {
		t.Fatal(err)
	}
	l := tlsf.NewLocked(h)
	for _, more := range []func() error{
		func() error { return l.Grow(1 << 12) },
		func() error { return l.AddRegion(alignedRegion(1<<12, 1<<12)) },
	} {
		fillUp(t, l, 100)
		got := make(chan error)
		go func() {
			_, err := l.AllocContext(context.Background(), 3000)
			got <- err
		}()
		waitForWaiters(l, 1)
		if err := more(); err != nil {
			t.Fatal(err)
		}
		if err := <-got; err != nil {
			t.Fatal(err)
		}
	}
}

func TestABlockThatOutgrowsItsShardMovesToAnother(t *testing.T) {
	mem := alignedRegion(1<<14, 1<<14)
	s, err := tlsf.NewSharded(mem, 4)
	if err != nil {
		t.Fatal(err)
	}
	var shards [4][][]byte // two blocks fit into each
	for range 8 {
		b := mustAlloc(t, s, 1800)
		k := (raw.Address(b) - raw.Address(mem)) >> 12
		shards[k] = append(shards[k], b)
	}
	gone := shards[3][1]
	if err := errors.Join(s.Free(shards[3][0]), s.Free(gone)); err != nil {
		t.Fatal(err)
	}
	copy(shards[0][0], "contents")
	b, err := s.Realloc(shards[0][0], 3000)
	if err != nil || string(b[:8]) != "contents" {
		t.Fatalf("%v %q", err, b[:min(8, len(b))])
	}
	if leaks := s.Leaks(); len(leaks) != 6 || leaks[5].Region != 3 || leaks[5].Capacity < 3000 {
		t.Fatal(leaks)
	}
	wantError(t, s.Free(make([]byte, 100)), tlsf.ErrForeign)
	wantError(t, s.Free(b[16:]), tlsf.ErrResliced)
	wantError(t, s.Free(shards[0][0]), tlsf.ErrDoubleFree)
	wantError(t, s.Free(mem[:0]), tlsf.ErrDoubleFree)
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
}
