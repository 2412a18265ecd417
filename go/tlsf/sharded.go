package tlsf

// Several heaps side by side, so that goroutines on different processors do not wait for one another.
//
//	region   | shard 0 | shard 1 | shard 2 | ...      equal parts; an address determines its shard
//	home     each processor uses one shard while that is unlocked and has memory; otherwise it tries the others
//
// The home shard is kept in a sync.Pool, which usually returns what the same processor put in last.
// Invariants: a shard's heap is only used with its lock held; at most one lock is held at a time; a block is freed in the
// shard that its address lies in, whichever goroutine frees it.
// The region is the hard cap: nothing is allocated on Go's heap instead.

import (
	"context"
	"errors"
	"math"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/freestone-alloc/freestone/go/internal/raw"
)

// Sharded is an allocator for many goroutines on several processors. Use NewSharded.
type Sharded struct {
	region   []byte
	shardLen uint64
	perByte  uint64 // shards per byte, times 2^64, rounded down
	shards   []*shard
	homes    sync.Pool // of *shard
	next     atomic.Uint32
	waiters  waitQueue
}

// shard occupies cache lines of its own.
type shard struct {
	_      [64]byte
	mu     sync.Mutex
	heap   *Heap
	number int
	_      [64]byte
}

// NewSharded divides region into n equal shards, with n = 0 one for each processor that Go uses. No block is larger than a
// shard. Options apply to each shard.
//
// # Errors
//
// ErrInvalidOption for n < 0; those of New.
func NewSharded(region []byte, n int, options ...Option) (*Sharded, error) {
	if n < 0 {
		return nil, &Error{Op: "new sharded", Err: ErrInvalidOption, Offset: -1, Size: -1, Detail: "a negative number of shards"}
	}
	if n == 0 {
		n = runtime.GOMAXPROCS(0)
	}
	size := len(region) / n &^ (granule - 1)
	s := &Sharded{region: region, shardLen: uint64(size)}
	for k := range n {
		var part []byte
		if region != nil {
			part = region[k*size : (k+1)*size : (k+1)*size]
		}
		heap, err := New(part, options...)
		if err != nil {
			return nil, err
		}
		s.shards = append(s.shards, &shard{heap: heap, number: k})
	}
	s.perByte = math.MaxUint64 / s.shardLen
	s.homes.New = func() any { return s.shards[s.next.Add(1)%uint32(n)] }
	return s, nil
}

// Alloc is Heap.Alloc: from the home shard, then from the others. It fails with ErrNoMemory when no shard has n bytes;
// AllocContext waits instead.
func (s *Sharded) Alloc(n int) ([]byte, error) {
	home := s.lockHome()
	b, err := home.heap.Alloc(n)
	home.mu.Unlock()
	s.homes.Put(home)
	if err != nil && errors.Is(err, ErrNoMemory) {
		return s.allocAway(home, n, granule, err)
	}
	return b, err
}

// AllocAligned is Heap.AllocAligned.
func (s *Sharded) AllocAligned(n, align int) ([]byte, error) {
	home := s.lockHome()
	b, err := home.heap.AllocAligned(n, align)
	home.mu.Unlock()
	s.homes.Put(home)
	if err != nil && errors.Is(err, ErrNoMemory) {
		return s.allocAway(home, n, align, err)
	}
	return b, err
}

// lockHome is this processor's shard, locked. If it is locked already, an unlocked one becomes the home shard, so that
// two processors do not keep sharing a shard.
func (s *Sharded) lockHome() *shard {
	home := s.homes.Get().(*shard)
	if home.mu.TryLock() {
		return home
	}
	for k := range s.shards {
		if other := s.shards[(home.number+k)%len(s.shards)]; other.mu.TryLock() {
			return other
		}
	}
	home.mu.Lock()
	return home
}

// allocAway tries the other shards.
func (s *Sharded) allocAway(home *shard, n, align int, err error) ([]byte, error) {
	for _, other := range s.shards {
		if other == home {
			continue
		}
		other.mu.Lock()
		b, err := other.heap.AllocAligned(n, align)
		other.mu.Unlock()
		if err == nil || !errors.Is(err, ErrNoMemory) {
			return b, err
		}
	}
	return nil, err
}

// AllocZeroed is Heap.AllocZeroed; the clearing happens outside the locks.
func (s *Sharded) AllocZeroed(n int) ([]byte, error) {
	b, err := s.Alloc(n)
	clear(b[:cap(b)])
	return b, err
}

// AllocContext is Locked.AllocContext.
func (s *Sharded) AllocContext(ctx context.Context, n int) ([]byte, error) {
	return s.waiters.alloc(ctx, n, s.Alloc)
}

// Free is Heap.Free. Any goroutine may free what another allocated.
func (s *Sharded) Free(b []byte) error {
	d := s.shardOf(b)
	d.mu.Lock()
	err := d.heap.Free(b)
	d.mu.Unlock()
	s.waiters.wake()
	return err
}

// FreeSized is Heap.FreeSized.
func (s *Sharded) FreeSized(start *byte, n int) error {
	d := s.shardOf(raw.Byte(start))
	d.mu.Lock()
	err := d.heap.FreeSized(start, n)
	d.mu.Unlock()
	s.waiters.wake()
	return err
}

// Realloc is Heap.Realloc; a block may move to another shard.
func (s *Sharded) Realloc(b []byte, n int) ([]byte, error) { return s.ReallocAligned(b, n, granule) }

// ReallocAligned is Heap.ReallocAligned.
func (s *Sharded) ReallocAligned(b []byte, n, align int) ([]byte, error) {
	if b == nil {
		return s.AllocAligned(n, align)
	}
	d := s.shardOf(b)
	d.mu.Lock()
	moved, err := d.heap.ReallocAligned(b, n, align)
	d.mu.Unlock()
	if errors.Is(err, ErrNoMemory) {
		if moved, err = s.allocAway(d, n, align, err); err != nil {
			return nil, err
		}
		copy(moved[:cap(moved)], b[:cap(b)])
		if err = s.Free(b); err != nil {
			return nil, errors.Join(err, s.Free(moved))
		}
	}
	s.waiters.wake()
	return moved, err
}

// Waiting is how many goroutines wait in AllocContext.
func (s *Sharded) Waiting() int { return int(s.waiters.n.Load()) }

// shardOf is the shard in which b starts; if b starts outside, any shard, which refuses it. A multiplication replaces the
// division; its result is the quotient or one less.
func (s *Sharded) shardOf(b []byte) *shard {
	off := uint64(raw.Address(b) - raw.Address(s.region))
	k, _ := bits.Mul64(off, s.perByte)
	if off-k*s.shardLen >= s.shardLen {
		k++
	}
	return s.shards[min(k, uint64(len(s.shards)-1))]
}

// Stats is the sum over the shards; PeakBytes is the sum of their peaks.
func (s *Sharded) Stats() Stats {
	sum := Stats{}
	for _, d := range s.shards {
		d.mu.Lock()
		one := d.heap.Stats()
		d.mu.Unlock()
		sum = sum.Add(one)
	}
	return sum
}

// Check is Heap.Check of each shard.
func (s *Sharded) Check() error {
	for _, d := range s.shards {
		d.mu.Lock()
		err := d.heap.Check()
		d.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// Leaks is Heap.Leaks of all shards; a leak's region is its shard.
func (s *Sharded) Leaks() []Leak {
	var all []Leak
	for k, d := range s.shards {
		d.mu.Lock()
		leaks := d.heap.Leaks()
		d.mu.Unlock()
		all = append(all, inShard(leaks, k)...)
	}
	return all
}

// Close is Heap.Close of each shard. Goroutines that wait for memory get ErrClosed.
func (s *Sharded) Close() error {
	var all []Leak
	for k, d := range s.shards {
		d.mu.Lock()
		err := d.heap.Close()
		d.mu.Unlock()
		var leak *LeakError
		switch {
		case errors.As(err, &leak):
			all = append(all, inShard(leak.Leaks, k)...)
		case err != nil:
			return err
		}
	}
	s.waiters.wake()
	if len(all) > 0 {
		return &LeakError{Leaks: all}
	}
	return nil
}

// inShard marks leaks with their shard.
func inShard(leaks []Leak, k int) []Leak {
	for n := range leaks {
		leaks[n].Region = k
	}
	return leaks
}

// String is the statistics as JSON, which makes a Sharded an expvar.Var.
func (s *Sharded) String() string { return s.Stats().String() }
