package tlsf

// Freeing, in named steps: find the block → mark free → merge with the previous → merge with the next → insert.
//
// Everything is checked before anything changes. A slice is a block if it starts where the map of starts has a block, and
// if its capacity is that block's. The slice has the capacity, so the size in a header is never trusted
// alone. Free itself, the path of the common case, is in hot.go.

import (
	"github.com/freestone-alloc/freestone/go/internal/raw"
)

// freeSlow is Free for every case.
func (h *Heap) freeSlow(b []byte) error {
	r, i, ok := h.find(b)
	if !ok {
		return h.notBlock("free", b)
	}
	return h.freeBlock(r, i, b)
}

// FreeSized is Free for code that has only the first byte of a block and its requested size, such as a typed
// wrapper: n is the size of the last Alloc or Realloc. Freeing nil does nothing.
//
// # Errors
//
// Those of Free; ErrResliced when the block is not one for n bytes.
func (h *Heap) FreeSized(start *byte, n int) error {
	b := raw.Byte(start)
	r, off := h.locate(raw.Address(b))
	if r == nil || !r.isStart(off) {
		return h.notBlock("free", b)
	}
	i := off/wordBytes - 1
	size, need := r.words[i]&^flagMask, h.blockSize(max(n, 0))
	if n <= 0 || size-need > granule && !h.mayStayWhole(need, listOf(size)) {
		return &Error{Op: "free", Err: ErrResliced, Offset: int64(off), Size: int64(n), Detail: "the block is not one for that many bytes"}
	}
	return h.freeBlock(r, i, b)
}

// find is the used block that b covers. The capacity of b is the size; the header must agree.
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
	return r, i, i < uint64(len(r.words)) && r.words[i]&^flagPrevFree == uint64(cap(b))+headerBytes+h.guard
}

// freeBlock frees the used block at word i.
func (h *Heap) freeBlock(r *region, i uint64, b []byte) error {
	if !h.footerHolds(r, i) {
		return h.blockError("free", ErrOverrun, b)
	}
	size := r.words[i] &^ flagMask
	if !h.release(r, i) {
		return h.blockError("free", ErrCorrupted, b)
	}
	h.clearExtras(r, i)
	r.clearStart(i)
	h.counters.noteFree(size)
	return nil
}

// release turns the used block at word i into free memory. It changes nothing and reports false when the block or a
// neighbour is damaged.
func (h *Heap) release(r *region, i uint64) bool {
	size := r.words[i] &^ flagMask
	if size < minBlock || size/wordBytes > r.last()-i {
		return false
	}
	from, end := i, i+size/wordBytes
	after, ok := r.freeBehind(end)
	if !ok || after != 0 && !h.unlink(r, end, after) {
		return false
	}
	if r.words[i]&flagPrevFree != 0 {
		before := r.freeBefore(i)
		if before == 0 || !h.unlink(r, i-before/wordBytes, before) {
			if after != 0 {
				h.push(r, end, after)
			}
			return false
		}
		from -= before / wordBytes
		size += before
	}
	r.makeFree(from, size+after)
	h.push(r, from, size+after)
	return true
}

// freeSize is the size of the free block at word i, 0 if there is none.
func (r *region) freeSize(i uint64) uint64 {
	size := r.words[i] - flagFree
	if size%granule != 0 || size < minBlock || size/wordBytes > r.last()-i || r.words[i+size/wordBytes-1] != size {
		return 0
	}
	return size
}

// freeBehind is the size of the block at word i if it is free, 0 if it is used, and whether it is sound.
func (r *region) freeBehind(i uint64) (uint64, bool) {
	if r.words[i]&flagFree == 0 {
		return 0, i == r.last() || r.isStart((i+1)*wordBytes)
	}
	size := r.freeSize(i)
	return size, size != 0
}

// freeBefore is the size of the free block that ends at word i, 0 if there is none.
func (r *region) freeBefore(i uint64) uint64 {
	size := r.words[i-1]
	if size < minBlock || size/wordBytes >= i || r.freeSize(i-size/wordBytes) != size {
		return 0
	}
	return size
}

// makeFree writes the header and the last word of a free block, and the flag behind it.
func (r *region) makeFree(i, size uint64) {
	end := i + size/wordBytes
	r.words[i] = size | flagFree
	r.words[end-1] = size
	r.words[end] |= flagPrevFree
}
