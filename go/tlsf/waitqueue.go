package tlsf

// Goroutines that wait for memory, first come, first served.
//
//	waiters  [ head, ..., tail ]     only the head tries; Free wakes the head; a head that leaves wakes the next
//
// No wake-up is lost: a waiter joins the queue before it tries, and Free checks the queue after it has freed. Either
// the try sees the freed memory, or Free sees the waiter.
// Cost for Free: one atomic load while no goroutine waits.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

type waitQueue struct {
	n       atomic.Int64 // len(waiters)
	mu      sync.Mutex
	waiters []*waiter
}

type waiter struct{ wake chan struct{} } // holds one signal

// alloc calls try, in this waiter's turn, until it succeeds, fails with anything but ErrNoMemory, or ctx is done.
func (q *waitQueue) alloc(ctx context.Context, n int, try func(int) ([]byte, error)) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, &Error{Op: "alloc", Err: err, Offset: -1, Size: int64(n), Detail: "the context was done before"}
	}
	if q.n.Load() == 0 {
		if b, err := try(n); !errors.Is(err, ErrNoMemory) {
			return b, err
		}
	}
	w := q.join()
	defer q.leave(w)
	for {
		if q.isHead(w) {
			if b, err := try(n); !errors.Is(err, ErrNoMemory) {
				return b, err
			}
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return nil, &Error{Op: "alloc", Err: fmt.Errorf("%w: %w", ErrNoMemory, ctx.Err()), Offset: -1, Size: int64(n)}
		}
	}
}

func (q *waitQueue) join() *waiter {
	w := &waiter{wake: make(chan struct{}, 1)}
	q.mu.Lock()
	q.waiters = append(q.waiters, w)
	q.n.Add(1)
	q.mu.Unlock()
	return w
}

// leave removes the waiter and wakes the next one, because there may be memory for it.
func (q *waitQueue) leave(w *waiter) {
	q.mu.Lock()
	at := slices.Index(q.waiters, w)
	q.waiters = slices.Delete(q.waiters, at, at+1)
	q.n.Add(-1)
	q.mu.Unlock()
	q.wake()
}

func (q *waitQueue) isHead(w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiters[0] == w
}

// wake lets the head of the queue try.
func (q *waitQueue) wake() {
	if q.n.Load() != 0 {
		q.wakeHead()
	}
}

func (q *waitQueue) wakeHead() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiters) == 0 {
		return
	}
	select {
	case q.waiters[0].wake <- struct{}{}:
	default: // it has a signal already
	}
}
