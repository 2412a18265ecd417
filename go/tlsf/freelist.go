package tlsf

// The free lists: doubly linked through the free blocks themselves, last in, first out.
//
//	free block at word i:   i: size|flags   i+1: next link   i+2: previous link   ...
//
// The free block at the end of the first region, the top, is in no list. It is cut only when no list has a block that fits, so
// blocks allocated from it and freed again change two numbers and no list. The previous link of a list's first block is 0. Links are
// trusted only if both sides agree. A write to a freed block is detected here, before anything changes, and
// the operation fails with ErrCorrupted.
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

// push puts the free block at word i at the head of its list, or makes it the top. Its header is the caller's.
func (h *Heap) push(r *region, i, size uint64) {
	if r.tag == 0 && i+size/wordBytes == r.last() {
		h.top, h.topSize = i, size
		h.counters.freeBlocks++
		return
	}
	list := listOf(size) & (listLen - 1)
	next := h.heads[list]
	h.heads[list] = r.tag | i
	r.words[i+1], r.words[i+2] = next, 0
	h.counters.freeBlocks++
	if next == 0 {
		h.lastNeed = 0
		h.secondLevel[list>>secondLog2] |= 1 << (list & (secondLen - 1))
		h.firstLevel |= 1 << (list >> secondLog2)
		return
	}
	if words, n := h.at(next); words != nil {
		words[n+2] = r.tag | i
	}
}

// pop takes the first block, link, out of its list; next is the block behind it. It changes nothing and reports false
// when the previous link of next is not link.
func (h *Heap) pop(list, link, next uint64) bool {
	if next == 0 {
		h.clearBit(list)
	} else if !h.setPrevious(next, link, 0) {
		return false
	}
	h.heads[list&(listLen-1)] = next
	h.counters.freeBlocks--
	return true
}

// setPrevious sets the previous block of the listed block next to to. It changes nothing and reports false if it
// was not from before.
func (h *Heap) setPrevious(next, from, to uint64) bool {
	words, n := h.at(next)
	if words == nil || words[n+2] != from {
		return false
	}
	words[n+2] = to
	return true
}

// unlink takes the free block at word i out of its list, wherever it stands there; if it is the top, there is none any more. It
// changes nothing and reports false when its neighbours in the list, or the heap, do not refer to it.
func (h *Heap) unlink(r *region, i, size uint64) bool {
	if i+2 >= uint64(len(r.words)) {
		return false
	}
	link := r.tag | i
	if link == h.top {
		if size != h.topSize {
			return false
		}
		h.top, h.topSize = 0, 0
		h.counters.freeBlocks--
		return true
	}
	list := listOf(size) & (listLen - 1)
	next, prev := r.words[i+1], r.words[i+2]
	if prev == 0 {
		return h.heads[list] == link && h.pop(list, link, next)
	}
	words, p := h.at(prev)
	if words == nil || words[p+1] != link || next != 0 && !h.setPrevious(next, link, prev) {
		return false
	}
	words[p+1] = next
	h.counters.freeBlocks--
	return true
}

// clearBit marks a list as empty.
func (h *Heap) clearBit(list uint64) {
	h.lastNeed = 0
	level := &h.secondLevel[list>>secondLog2&(firstLen-1)]
	*level &^= 1 << (list & (secondLen - 1))
	if *level == 0 {
		h.firstLevel &^= 1 << (list >> secondLog2 & 63)
	}
}

// isLinked reports whether the free block at word i and its neighbours in the list agree about each other; or whether it is the
// top.
func (h *Heap) isLinked(r *region, i, size uint64) bool {
	if i+2 >= uint64(len(r.words)) {
		return false
	}
	link, next, prev := r.tag|i, r.words[i+1], r.words[i+2]
	if link == h.top {
		return size == h.topSize
	}
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

// isFreeBefore reports whether a sound free block ends at word i.
func (h *Heap) isFreeBefore(r *region, i uint64) bool {
	size := r.freeBefore(i)
	return size != 0 && h.isLinked(r, i-size/wordBytes, size)
}
