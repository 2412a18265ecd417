package tlsf_test

// Waiting at the cap: order, contexts, Close, growth.

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/freestone-alloc/freestone/go/tlsf"
)

func TestAWaitingAllocationGetsFreedMemory(t *testing.T) {
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

func TestAllOfManyWaitersAtTheCapAreServed(t *testing.T) {
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

func TestGrowingALockedHeapWakesWaiters(t *testing.T) {
	h, err := tlsf.New(alignedRegion(1<<12, 1<<14))
	if err != nil {
		t.Fatal(err)
	}
	l := tlsf.NewLocked(h)
	for _, c := range []struct {
		bytes int
		more  func() error
	}{
		{6000, func() error { return l.GrowRegion(1 << 13) }}, // more than the region before
		{3000, func() error { return l.AddRegion(alignedRegion(1<<12, 1<<12)) }},
	} {
		fillUp(t, l, 100)
		got := make(chan error)
		go func() {
			_, err := l.AllocContext(context.Background(), c.bytes)
			got <- err
		}()
		waitForWaiters(l, 1)
		if err := c.more(); err != nil {
			t.Fatal(err)
		}
		if err := <-got; err != nil {
			t.Fatal(err)
		}
	}
}
