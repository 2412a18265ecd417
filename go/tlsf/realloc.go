package tlsf

// Reallocation: shrink in place → grow into a free next block → move.

import "errors"

// Realloc changes the block to n bytes and returns it, at the same place where that is possible. It keeps the contents, up to
// the smaller of the old capacity and n. The old slice must not be used any more, unless an error is returned: then the
// old block is unchanged. Realloc of nil is Alloc.
//
// # Errors
//
// Those of Free and of Alloc.
//
// # Complexity
//
// O(1); when the block moves, that of Alloc, and a copy of the contents.
func (h *Heap) Realloc(b []byte, n int) ([]byte, error) {
	return h.ReallocAligned(b, n, granule)
}

// ReallocAligned is Realloc that keeps the block, which must lie at a multiple of align already, at such a multiple.
func (h *Heap) ReallocAligned(b []byte, n, align int) ([]byte, error) {
	if b == nil {
		return h.AllocAligned(n, align)
	}
	r, i, ok := h.find(b)
	switch {
	case !ok:
		return nil, h.notBlock("realloc", b)
	case n <= 0:
		return nil, h.fail("realloc", ErrInvalidSize, int64(n))
	case !validAlign(align):
		return nil, h.fail("realloc", ErrInvalidAlignment, int64(n))
	case h.rare && !h.footerHolds(r, i):
		return nil, h.blockError("realloc", ErrOverrun, b)
	}
	need := h.blockSize(n)
	done, s := h.resize(r, i, need)
	switch {
	case s != noError:
		return nil, h.blockError("realloc", s, b)
	case !done:
		return h.move(r, i, b, n, align)
	case h.rare:
		h.writeExtras(r, i, n)
	}
	return h.slice(r, i, n), nil
}

// move reallocates the block elsewhere.
func (h *Heap) move(r *region, i uint64, b []byte, n, align int) ([]byte, error) {
	moved, err := h.AllocAligned(n, align)
	if err != nil {
		return nil, err
	}
	copy(moved[:cap(moved)], b[:cap(b)])
	if err := h.freeBlock(r, i, b); err != nil {
		return nil, errors.Join(err, h.Free(moved))
	}
	return moved, nil
}

// resize makes the used block at word i hold need bytes where it is, if the memory behind it allows that.
func (h *Heap) resize(r *region, i, need uint64) (bool, sentinel) {
	size := r.words[i] &^ flagMask
	end := i + size/wordBytes
	if size < minBlock || end >= uint64(len(r.words)) {
		return false, ErrCorrupted
	}
	after, ok := r.freeBehind(end)
	switch {
	case !ok:
		return false, ErrCorrupted
	case need > size+after:
		return false, noError
	case need <= size && size-need < minBlock:
		return true, noError
	case after != 0 && !h.unlink(r, end, after):
		return false, ErrCorrupted
	}
	whole := size + after
	if rest := whole - need; rest >= minBlock {
		r.makeFree(i+need/wordBytes, rest)
		h.push(r, i+need/wordBytes, rest)
		whole = need
	} else {
		r.words[i+whole/wordBytes] &^= flagPrevFree
	}
	r.words[i] = whole | r.words[i]&flagPrevFree
	h.counters.noteResize(size, whole)
	return true, noError
}
