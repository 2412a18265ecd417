package tlsf

// The free lists: doubly linked through the free blocks themselves, last in, first out.
//
//	free block at word i:   i: size|flags   i+1: next link   i+2: previous link   ...
//
// The previous link of a list's first block is 0. Links are trusted only when both sides agree: a block that was written to
// after it was freed is found here, before anything changes, and the operation fails with ErrCorrupted.
// Cost: push and unlink touch the block, its neighbours in the list, and at most one bit in each level.

// at is the words in which the linked block lies and its index there; nil when no block can be there.
func (h *Heap) at(link uint64) ([]uint64, uint64) {
	r := &h.first
	if link > indexMask {
		if r = h.region(link >> tagShift); r == nil {
			return nil, 0
		}
	}
	i := link & indexMask
	if i+2 >= uint64(len(r.words)) {
		return nil, 0
	}
	return r.words, i
}

// push puts the free block at word i at the head of its list. Its header is the caller's.
func (h *Heap) push(r *region, i, size uint64) {
	list := listOf(size) & (listLen - 1)
	link, next := r.tag|i, h.heads[list]
	block := r.words[i+1 : i+3 : i+3]
	block[0], block[1] = next, 0
	if next != 0 {
		if words, n := h.at(next); words != nil {
			words[n+2] = link
		}
	} else {
		h.secondLevel[list>>secondLog2] |= 1 << (list & (secondLen - 1))
		h.firstLevel |= 1 << (list >> secondLog2)
	}
	h.heads[list] = link
	h.counters.freeBlocks++
}

// unlink takes the free block at word i out of its list. It changes nothing and reports false when the block's
// neighbours do not know it.
func (h *Heap) unlink(r *region, i, size uint64) bool {
	if !h.isLinked(r, i, size) {
		return false
	}
	list := listOf(size) & (listLen - 1)
	next, prev := r.words[i+1], r.words[i+2]
	if next != 0 {
		words, n := h.at(next)
		words[n+2] = prev
	}
	if prev != 0 {
		words, p := h.at(prev)
		words[p+1] = next
	} else if h.heads[list] = next; next == 0 {
		h.clearBit(list)
	}
	h.counters.freeBlocks--
	return true
}

// clearBit notes that a list has become empty.
func (h *Heap) clearBit(list uint64) {
	level := &h.secondLevel[list>>secondLog2&(firstLen-1)]
	*level &^= 1 << (list & (secondLen - 1))
	if *level == 0 {
		h.firstLevel &^= 1 << (list >> secondLog2)
	}
}

// isLinked reports whether the free block at word i and its neighbours in the list agree about each other.
func (h *Heap) isLinked(r *region, i, size uint64) bool {
	if i+2 >= uint64(len(r.words)) {
		return false
	}
	link, next, prev := r.tag|i, r.words[i+1], r.words[i+2]
	if prev != 0 {
		if words, p := h.at(prev); words == nil || words[p+1] != link {
			return false
		}
	} else if h.heads[listOf(size)&(listLen-1)] != link {
		return false
	}
	if next != 0 {
		if words, n := h.at(next); words == nil || words[n+2] != link {
			return false
		}
	}
	return true
}
