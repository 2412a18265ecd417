package tlsf

// Freeing, in named steps: find the block → mark free → merge with the previous → merge with the next → insert.
//
// Everything is checked before anything changes. A slice names a block when it starts where the map of starts says that a
// block does, and when its capacity is that block's. The capacity lies with the caller, so a block's size is never believed
// on the word of its header alone.

import (
	"github.com/freestone-alloc/freestone/go/internal/raw"
)

// Free gives the block back. b is the slice as it was returned; its length may differ. The block's memory, and every
// slice of it, belong to the heap from here on. Freeing nil does nothing.
//
// # Errors
//
// ErrForeign, ErrResliced, ErrDoubleFree, ErrOverrun, ErrCorrupted, ErrClosed. Nothing has changed then, and the block, if
// it is one, is still in use.
//
// # Complexity
//
// O(1), no allocation on Go's heap.
func (h *Heap) Free(b []byte) error {
	r, i, ok := h.find(b)
	if !ok {
		return h.notBlock("free", b)
	}
	return h.freeAt(r, i, b)
}

// FreeAt is Free for code that holds only the first byte of a block, such as a typed wrapper: it cannot see
// whether the slice it came from was the whole block. Freeing nil does nothing.
func (h *Heap) FreeAt(start *byte) error {
	b := raw.Byte(start)
	r, off := h.locate(raw.Address(b))
	if r == nil || !r.isStart(off) {
		return h.notBlock("free", b)
	}
	return h.freeAt(r, off/wordBytes-1, b)
}

// find is the used block that b is the whole of.
func (h *Heap) find(b []byte) (r *region, i uint64, ok bool) {
	r = &h.first
	off := uint64(raw.Address(b) - raw.Address(r.mem))
	if off >= uint64(len(r.mem)) {
		if r, off = h.locate(raw.Address(b)); r == nil {
			return nil, 0, false
		}
	}
	if !r.isStart(off) {
		return nil, 0, false
	}
	i = off/wordBytes - 1
	return r, i, uint64(cap(b)) == h.usable(r, i)
}

// freeAt frees the used block at word i.
func (h *Heap) freeAt(r *region, i uint64, b []byte) error {
	if h.rare && !h.footerHolds(r, i) {
		return h.blockError("free", ErrOverrun, b)
	}
	if !h.canMergePrevious(r, i) || !h.canMergeNext(r, i) {
		return h.blockError("free", ErrCorrupted, b)
	}
	if h.rare {
		h.undress(r, i)
	}
	r.clearStart(i)
	h.counters.noteFree(r.words[i] &^ flagMask)
	h.release(r, i)
	return nil
}

// canMergePrevious reports whether the block before word i, if its header says it is free, is one.
func (h *Heap) canMergePrevious(r *region, i uint64) bool {
	if r.words[i]&flagPrevFree == 0 {
		return true
	}
	size := r.words[i-1]
	if size%granule != 0 || size < minBlock || size/wordBytes >= i {
		return false
	}
	before := i - size/wordBytes
	return r.words[before] == size|flagFree && h.isLinked(r, before, size)
}

// canMergeNext reports whether there is a block behind the one at word i and, if it is free, whether the lists know it.
func (h *Heap) canMergeNext(r *region, i uint64) bool {
	size := r.words[i] &^ flagMask
	if size < minBlock || size/wordBytes > r.last()-i {
		return false
	}
	next := i + size/wordBytes
	head := r.words[next]
	if head&flagPrevFree != 0 {
		return false
	}
	if head&flagFree == 0 {
		return true
	}
	return head/wordBytes <= r.last()-next && h.isLinked(r, next, head&^flagMask)
}

// release turns the block at word i, whose neighbours have been checked, into free memory.
func (h *Heap) release(r *region, i uint64) {
	size := r.words[i] &^ flagMask
	end := i + size/wordBytes
	if r.words[i]&flagPrevFree != 0 {
		before := r.words[i-1]
		i -= before / wordBytes
		h.unlink(r, i, before)
		size += before
	}
	if head := r.words[end]; head&flagFree != 0 {
		after := head &^ flagMask
		h.unlink(r, end, after)
		size += after
		end += after / wordBytes
	}
	r.words[i] = size | flagFree
	r.words[end-1] = size
	r.words[end] |= flagPrevFree
	h.push(r, i, size)
}
