package main

// Where the proxy's buffers come from.

import (
	"context"
	"fmt"
	"math/bits"
	"sync"

	"github.com/freestone-alloc/freestone/go/tlsf"
	"github.com/freestone-alloc/freestone/go/tlsf/mmap"
)

// source gives and takes back buffers.
type source interface {
	get(ctx context.Context, n int) ([]byte, error)
	put(b []byte) error
	close() error
	offHeapBytes() int // the part of the budget that Go's heap must not use
}

// newSource is nil for "none".
func newSource(c config, kind string) (source, error) {
	switch kind {
	case "none":
		return nil, nil
	case "make":
		return fresh{}, nil
	case "pool":
		return &pools{}, nil
	case "capped":
		return newCapped(c.CapMiB << 20), nil
	case "tlsf":
		return newOffHeap(c.CapMiB<<20, func(region []byte) (heap, error) {
			h, err := tlsf.New(region)
			return tlsf.NewLocked(h), err
		})
	case "sharded":
		return newOffHeap(c.CapMiB<<20, func(region []byte) (heap, error) { return tlsf.NewSharded(region, 0) })
	}
	return nil, fmt.Errorf("no buffers %q; use make, pool, capped, tlsf, sharded or none", kind)
}

// piece is the number of bytes that net/http/httputil's ReverseProxy copies at a time.
type piece [32 << 10]byte

// pieces that are reused.
type pieces struct{ pool sync.Pool }

func (p *pieces) get() *piece {
	if x, ok := p.pool.Get().(*piece); ok {
		return x
	}
	return new(piece)
}

func (p *pieces) put(x *piece) { p.pool.Put(x) }

type fresh struct{}

func (fresh) get(_ context.Context, n int) ([]byte, error) { return make([]byte, n), nil }
func (fresh) put([]byte) error                             { return nil }
func (fresh) close() error                                 { return nil }
func (fresh) offHeapBytes() int                            { return 0 }

// pools has a sync.Pool of *[]byte for each power of two.
type pools struct{ byLog2 [48]sync.Pool }

func (p *pools) get(_ context.Context, n int) ([]byte, error) {
	log2 := bits.Len(uint(n - 1))
	if b, ok := p.byLog2[log2].Get().(*[]byte); ok {
		return (*b)[:n], nil
	}
	return make([]byte, n, 1<<log2), nil
}

func (p *pools) put(b []byte) error {
	p.byLog2[bits.Len(uint(cap(b)-1))].Put(&b)
	return nil
}

func (p *pools) close() error      { return nil }
func (p *pools) offHeapBytes() int { return 0 }

// capped is pools with a cap on the bytes in use, counted as rounded up. Waiting requests are served in the order of arrival.
type capped struct {
	pools
	mu      sync.Mutex
	left    int
	waiters []waiter
}

type waiter struct {
	bytes int
	ready chan struct{}
}

func newCapped(bytes int) *capped { return &capped{left: bytes} }

func (c *capped) get(ctx context.Context, n int) ([]byte, error) {
	w := waiter{1 << bits.Len(uint(n-1)), make(chan struct{})}
	c.mu.Lock()
	c.waiters = append(c.waiters, w)
	c.serve()
	c.mu.Unlock()
	<-w.ready // no request is cancelled here
	return c.pools.get(ctx, n)
}

func (c *capped) put(b []byte) error {
	err := c.pools.put(b)
	c.mu.Lock()
	c.left += cap(b)
	c.serve()
	c.mu.Unlock()
	return err
}

// serve wakes the waiting requests that fit now.
func (c *capped) serve() {
	for len(c.waiters) > 0 && c.waiters[0].bytes <= c.left {
		c.left -= c.waiters[0].bytes
		close(c.waiters[0].ready)
		c.waiters = c.waiters[1:]
	}
}

// heap is the interface that Locked and Sharded share.
type heap interface {
	AllocContext(ctx context.Context, n int) ([]byte, error)
	Free(b []byte) error
	Check() error
	Close() error
}

type offHeap struct {
	region *mmap.Region
	heap
}

func newOffHeap(capBytes int, over func(region []byte) (heap, error)) (*offHeap, error) {
	region, err := mmap.Map(capBytes, capBytes)
	if err != nil {
		return nil, err
	}
	h, err := over(region.Bytes())
	if err != nil {
		return nil, err
	}
	return &offHeap{region, h}, nil
}

func (o *offHeap) get(ctx context.Context, n int) ([]byte, error) { return o.AllocContext(ctx, n) }
func (o *offHeap) put(b []byte) error                             { return o.Free(b) }
func (o *offHeap) offHeapBytes() int                              { return len(o.region.Bytes()) }

// close fails if a buffer was not put back.
func (o *offHeap) close() error {
	if err := o.Check(); err != nil {
		return err
	}
	if err := o.heap.Close(); err != nil {
		return err
	}
	return o.region.Close()
}
