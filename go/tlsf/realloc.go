package tlsf

// Reallocation: shrink in place → grow into a free next block → move.

// Realloc changes the block to n bytes and returns it, at the same place where that is possible. Its contents stay, up to
// the smaller of the old capacity and n. The old slice must not be used any more, unless an error is returned: then the
// old block is untouched. Realloc of nil is Alloc.
//
// # Errors
//
// Those of Free and of Alloc.
//
// # Complexity
//
// O(1), and a copy of the contents when the block moves.
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
	case !h.canMergeNext(r, i):
		return nil, h.blockError("realloc", ErrCorrupted, b)
	}
	if need := h.blockSize(n); h.resize(r, i, need) {
		if h.rare {
			h.dress(r, i, n)
		}
		return h.slice(r, i, n), nil
	}
	moved, err := h.AllocAligned(n, align)
	if err != nil {
		return nil, err
	}
	copy(moved, b[:cap(b)])
	if err := h.freeAt(r, i, b); err != nil {
		return nil, err
	}
	return moved, nil
}

// resize makes the used block at word i hold need bytes where it is, if the memory behind it allows that.
func (h *Heap) resize(r *region, i, need uint64) bool {
	size := r.words[i] &^ flagMask
	whole := size
	end := i + size/wordBytes
	if head := r.words[end]; head&flagFree != 0 && (need > size || size-need >= minBlock) {
		whole += head &^ flagMask
	}
	if need > whole {
		return false
	}
	if whole != size {
		h.unlink(r, end, whole-size)
		end = i + whole/wordBytes
	}
	if rest := whole - need; rest >= minBlock {
		tail := i + need/wordBytes
		r.words[tail] = rest | flagFree
		r.words[end-1] = rest
		r.words[end] |= flagPrevFree
		h.push(r, tail, rest)
		whole = need
	} else {
		r.words[end] &^= flagPrevFree
	}
	r.words[i] = whole | r.words[i]&flagPrevFree
	h.counters.noteResize(size, whole)
	return true
}
