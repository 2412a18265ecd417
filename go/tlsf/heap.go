package tlsf

// The heap itself: its lists, its regions, its counters; made by New, ended by Close.
//
//	firstLevel   bit f set: some list of first level f has a block
//	secondLevel  [f] bit s set: list f*32+s has a block
//	heads        [f*32+s] the first block of the list, 0 for none
//	top          the free block at the end of the first region, 0 for none; it is in no list
//
// Invariants: a bit is set exactly when its list has a block; every free block but the top is in the list of its
// size.
// A Heap belongs to one goroutine at a time; Locked and Sharded are for more.

import (
	"fmt"

	"github.com/freestone-alloc/freestone/go/internal/raw"
)

// Heap is an allocator over regions of memory that the caller provides. See the package documentation for its rules. Use New.
type Heap struct {
	first       region // the first region in place: most heaps have one
	firstLevel  uint64
	secondLevel [firstLen]uint32
	heads       [listLen]uint64
	top         uint64 // the word of its header
	topSize     uint64 // 0 for none

	// The last search of Alloc: its result holds as long as no list becomes empty or non-empty.
	lastNeed, lastList uint64

	guard     uint64 // bytes of footer in each block: 0 or footerBytes
	rare      bool   // footers or call sites are on
	isClosed  bool
	counters  counters
	more      []*region // regions 1, 2, ...
	callSites *callSites
}

// Option is a setting of a new heap.
type Option func(*Heap) sentinel

// New makes a heap over region, which must start at a multiple of 16 (any make of 48 bytes or more does) and stay
// unused by any other code until Close. The heap starts with len(region) bytes; GrowRegion can take the rest of its capacity.
//
// # Errors
//
// ErrRegionNil, ErrRegionTooSmall, ErrRegionTooLarge, ErrRegionMisaligned, ErrInvalidOption.
func New(region []byte, options ...Option) (*Heap, error) {
	h := &Heap{}
	for i, option := range options {
		if option == nil {
			return nil, &Error{Op: "new", Err: ErrInvalidOption, Offset: -1, Size: -1, Detail: "nil option"}
		}
		if s := option(h); s != noError {
			return nil, &Error{Op: "new", Err: s, Offset: -1, Size: -1, Detail: optionDetail(i)}
		}
	}
	r, s := newRegion(region, 0)
	if s != noError {
		return nil, &Error{Op: "new", Err: s, Offset: -1, Size: int64(len(region))}
	}
	h.first = *r
	h.frame(&h.first)
	return h, nil
}

// AddRegion adds another region. A block never spans two regions. The conditions are those of New, and
// regions must not overlap.
func (h *Heap) AddRegion(mem []byte) error {
	r, s := newRegion(mem, len(h.more)+1)
	switch {
	case h.isClosed:
		s = ErrClosed
	case s == noError && len(h.more)+1 >= maxRegions:
		s = ErrRegionTooLarge
	case s == noError && h.overlaps(mem):
		s = ErrRegionOverlap
	}
	if s != noError {
		return &Error{Op: "add region", Err: s, Offset: -1, Size: int64(len(mem))}
	}
	h.more = append(h.more, r)
	h.frame(r)
	return nil
}

// GrowRegion extends the newest region by n bytes of its slice's capacity; n is a multiple of 16, at least 32. The new memory
// merges with a free block at the old end.
//
// # Errors
//
// ErrInvalidSize; ErrTooLarge when the capacity does not have n more bytes; ErrCorrupted; ErrClosed.
func (h *Heap) GrowRegion(n int) error {
	if h.isClosed {
		return h.fail("grow", ErrClosed, int64(n))
	}
	r := h.newest()
	switch {
	case n < minBlock || n%granule != 0:
		return h.fail("grow", ErrInvalidSize, int64(n))
	case n > int(r.mostBytes())-len(r.mem):
		return &Error{Op: "grow", Err: ErrTooLarge, Offset: -1, Size: int64(n),
			Detail: "the capacity of the region's slice is the limit"}
	}
	if i := r.last(); r.words[i]&^flagPrevFree != 0 || r.words[i] != 0 && !h.isFreeBefore(r, i) {
		return h.fail("grow", ErrCorrupted, int64(n))
	}
	i := r.extend(n)
	r.words[i] |= uint64(n)
	r.words[r.last()] = 0
	h.counters.totalBytes += uint64(n)
	h.release(r, i)
	return nil
}

// Close ends the heap. Its regions are the caller's again, and every later call fails with ErrClosed.
//
// # Errors
//
// A *LeakError (errors.Is ErrLeak) with the blocks still in use; the heap is closed nevertheless. ErrClosed the second time.
func (h *Heap) Close() error {
	if h.isClosed {
		return h.fail("close", ErrClosed, -1)
	}
	leaks := h.Leaks()
	*h = Heap{isClosed: true}
	if len(leaks) > 0 {
		return &LeakError{Leaks: leaks}
	}
	return nil
}

// frame turns a fresh region into one free block.
func (h *Heap) frame(r *region) {
	size := uint64(len(r.mem)) - frameBytes
	r.words[1] = size | flagFree
	r.words[r.last()-1] = size
	r.words[r.last()] = flagPrevFree
	h.counters.totalBytes += size
	h.push(r, 1, size)
}

// newest is the region that GrowRegion lengthens.
func (h *Heap) newest() *region {
	if len(h.more) > 0 {
		return h.more[len(h.more)-1]
	}
	return &h.first
}

// region is the number-th region, nil if there is none.
func (h *Heap) region(number uint64) *region {
	if number == 0 {
		return &h.first
	}
	if number-1 < uint64(len(h.more)) {
		return h.more[number-1]
	}
	return nil
}

// locate is the region in which address lies and the byte offset in it; nil if it lies in none.
func (h *Heap) locate(address uintptr) (*region, uint64) {
	for n := 0; n <= len(h.more); n++ {
		r := h.region(uint64(n))
		if off := address - raw.Address(r.mem); off < uintptr(len(r.mem)) {
			return r, uint64(off)
		}
	}
	return nil, 0
}

// overlaps reports whether mem, with its capacity, shares memory with a region and its capacity.
func (h *Heap) overlaps(mem []byte) bool {
	from := raw.Address(mem)
	for n := 0; n <= len(h.more); n++ {
		r := h.region(uint64(n))
		start := raw.Address(r.mem)
		if from < start+uintptr(cap(r.mem)) && start < from+uintptr(cap(mem)) {
			return true
		}
	}
	return false
}

// fail is an error without an offset.
func (h *Heap) fail(op string, s sentinel, size int64) error {
	if h.isClosed {
		s = ErrClosed
	}
	return &Error{Op: op, Err: s, Offset: -1, Size: size}
}

// optionDetail names an option by its place.
func optionDetail(i int) string { return fmt.Sprintf("option %d", i+1) }
