// Package mmap provides regions outside Go's heap for heaps of package tlsf: the garbage collector neither scans nor
// counts them, and neither does GOMEMLIMIT.
//
// On Linux and macOS a region is an anonymous private mapping. Pages get memory when they are first written, so a
// generous capacity costs address space only. Elsewhere the region comes from Go's heap, all of its capacity at once, and
// OffHeap is false.
package mmap

import (
	"errors"
	"fmt"
)

// The errors; test with errors.Is. Errors of the operating system are wrapped as they are.
var (
	// ErrInvalidSize: a size of 0 or below, or a capacity below the size.
	ErrInvalidSize = errors.New("mmap: invalid size")
	// ErrClosed: the region was closed.
	ErrClosed = errors.New("mmap: region is closed")
)

// OffHeap reports whether regions lie outside Go's heap on this system.
const OffHeap = offHeap

// Region is one mapping. It belongs to one goroutine at a time.
type Region struct {
	size int
	mem  []byte // the whole mapping
}

// Map makes a region of size zeroed bytes that can grow to capacity: the slice that Bytes returns has that capacity, and
// tlsf's GrowRegion uses it.
//
// # Errors
//
// ErrInvalidSize; the operating system's error (errors.Is, for instance, syscall.ENOMEM).
func Map(size, capacity int) (*Region, error) {
	if size <= 0 || capacity < size {
		return nil, fmt.Errorf("%w: size %d, capacity %d; request at least 1 byte, and a capacity of at least the size",
			ErrInvalidSize, size, capacity)
	}
	mem, err := reserve(capacity)
	if err != nil {
		return nil, fmt.Errorf("mmap: mapping %d bytes: %w; request less, or raise the limit (ulimit -v, overcommit)", capacity, err)
	}
	return &Region{size: size, mem: mem}, nil
}

// Bytes is the region's memory, nil after Close. It starts at a multiple of the page size.
func (r *Region) Bytes() []byte {
	if r.mem == nil {
		return nil
	}
	return r.mem[:r.size:len(r.mem)]
}

// Close unmaps the memory. Every slice of it is invalid from here on: accessing one ends the program, as an invalid
// pointer would. Close the heap first.
//
// # Errors
//
// ErrClosed the second time.
func (r *Region) Close() error {
	if r.mem == nil {
		return ErrClosed
	}
	mem := r.mem
	r.mem = nil
	return release(mem)
}
