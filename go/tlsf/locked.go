package tlsf

// A heap behind one lock, for goroutines.
//
// Invariants: the heap is only used with mu held; a waiter is woken after every change that could help one.
// Cost: one uncontended lock and unlock on top of the heap's. Under contention, use Sharded.

import (
	"context"
	"encoding/json"
	"sync"
)

// Locked is a Heap that any number of goroutines may use at once. Use NewLocked.
type Locked struct {
	mu      sync.Mutex
	heap    *Heap
	waiters waitQueue
}

// NewLocked puts a lock around heap, which must not be used directly any more.
func NewLocked(heap *Heap) *Locked { return &Locked{heap: heap} }

// Alloc is Heap.Alloc. At the cap it fails with ErrNoMemory; AllocContext waits instead.
func (l *Locked) Alloc(n int) ([]byte, error) {
	l.mu.Lock()
	b, err := l.heap.Alloc(n)
	l.mu.Unlock()
	return b, err
}

// AllocAligned is Heap.AllocAligned.
func (l *Locked) AllocAligned(n, align int) ([]byte, error) {
	l.mu.Lock()
	b, err := l.heap.AllocAligned(n, align)
	l.mu.Unlock()
	return b, err
}

// AllocZeroed is Heap.AllocZeroed; the clearing happens outside the lock.
func (l *Locked) AllocZeroed(n int) ([]byte, error) {
	b, err := l.Alloc(n)
	clear(b[:cap(b)])
	return b, err
}

// AllocContext is Alloc that waits for memory until ctx is done. Waiting goroutines are served in order of arrival, so a
// large request is not starved by small ones. The error of a wait that was given up is both ErrNoMemory and ctx's. It does not
// wait if not even GrowRegion could make room, ErrTooLarge; if only GrowRegion can, it waits for that, and so do the goroutines
// behind it.
func (l *Locked) AllocContext(ctx context.Context, n int) ([]byte, error) {
	return l.waiters.alloc(ctx, n, l.Alloc)
}

// Free is Heap.Free.
func (l *Locked) Free(b []byte) error {
	l.mu.Lock()
	err := l.heap.Free(b)
	l.mu.Unlock()
	l.waiters.wake()
	return err
}

// FreeSized is Heap.FreeSized.
func (l *Locked) FreeSized(start *byte, n int) error {
	l.mu.Lock()
	err := l.heap.FreeSized(start, n)
	l.mu.Unlock()
	l.waiters.wake()
	return err
}

// Realloc is Heap.Realloc.
func (l *Locked) Realloc(b []byte, n int) ([]byte, error) { return l.ReallocAligned(b, n, granule) }

// ReallocAligned is Heap.ReallocAligned.
func (l *Locked) ReallocAligned(b []byte, n, align int) ([]byte, error) {
	l.mu.Lock()
	b, err := l.heap.ReallocAligned(b, n, align)
	l.mu.Unlock()
	l.waiters.wake()
	return b, err
}

// GrowRegion is Heap.GrowRegion.
func (l *Locked) GrowRegion(n int) error {
	l.mu.Lock()
	err := l.heap.GrowRegion(n)
	l.mu.Unlock()
	l.waiters.wake()
	return err
}

// AddRegion is Heap.AddRegion.
func (l *Locked) AddRegion(mem []byte) error {
	l.mu.Lock()
	err := l.heap.AddRegion(mem)
	l.mu.Unlock()
	l.waiters.wake()
	return err
}

// Waiting is how many goroutines wait in AllocContext.
func (l *Locked) Waiting() int { return int(l.waiters.n.Load()) }

// Offset is Heap.Offset.
func (l *Locked) Offset(b []byte) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heap.Offset(b)
}

// At is Heap.At.
func (l *Locked) At(offset uint64) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heap.At(offset)
}

// Stats is Heap.Stats.
func (l *Locked) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heap.Stats()
}

// Check is Heap.Check. The heap is locked meanwhile.
func (l *Locked) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heap.Check()
}

// Leaks is Heap.Leaks.
func (l *Locked) Leaks() []Leak {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heap.Leaks()
}

// Close is Heap.Close. Goroutines that wait for memory get ErrClosed.
func (l *Locked) Close() error {
	l.mu.Lock()
	err := l.heap.Close()
	l.mu.Unlock()
	l.waiters.wake()
	return err
}

// String is the statistics as JSON, which makes a Locked an expvar.Var: expvar.Publish("buffers", locked).
func (l *Locked) String() string { return l.Stats().String() }

// String is the statistics as JSON.
func (s Stats) String() string {
	text, err := json.Marshal(s)
	if err != nil {
		return "{}"
	}
	return string(text)
}
