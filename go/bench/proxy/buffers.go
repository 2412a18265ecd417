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
}

func newSource(c config) (source, error) {
	switch c.Buffers {
	case "make":
		return fresh{}, nil
	case "pool":
		return &pools{}, nil
	case "tlsf":
		return newOffHeap(c.CapMiB << 20)
	}
	return nil, fmt.Errorf("no buffers %q; use make, pool or tlsf", c.Buffers)
}

type fresh struct{}

func (fresh) get(_ context.Context, n int) ([]byte, error) { return make([]byte, n), nil }
func (fresh) put([]byte) error                             { return nil }
func (fresh) close() error                                 { return nil }

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

func (p *pools) close() error { return nil }

type offHeap struct {
	region *mmap.Region
	*tlsf.Sharded
}

func newOffHeap(capBytes int) (*offHeap, error) {
	region, err := mmap.Map(capBytes, capBytes)
	if err != nil {
		return nil, err
	}
	sharded, err := tlsf.NewSharded(region.Bytes(), 0)
	if err != nil {
		return nil, err
	}
	return &offHeap{region, sharded}, nil
}

func (o *offHeap) get(ctx context.Context, n int) ([]byte, error) { return o.AllocContext(ctx, n) }
func (o *offHeap) put(b []byte) error                             { return o.Free(b) }

// close fails if a buffer was not put back.
func (o *offHeap) close() error {
	if err := o.Check(); err != nil {
		return err
	}
	if err := o.Close(); err != nil {
		return err
	}
	return o.region.Close()
}
