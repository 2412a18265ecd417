package tlsf

// Allocation, in named steps: search, or else the top → take from the list → split, unless it is a close fit → mark used.
//
// Alloc itself, the path of the common case, is in hot.go; it returns the same block as the steps here.
//
// Cost: two bit scans, one list removal and, when the block is split, one insertion; independent of the
// number of blocks and of their size. The exception is the last resort, a walk of one list, when the
// request would otherwise fail.

import (
	"github.com/freestone-alloc/freestone/go/internal/raw"
)

// AllocZeroed is Alloc with every byte up to the slice's capacity cleared.
func (h *Heap) AllocZeroed(n int) ([]byte, error) {
	b, err := h.Alloc(n)
	clear(b[:cap(b)])
	return b, err
}

// blockSize is the size of the block for n bytes: header and footer added, rounded up to the granule.
func (h *Heap) blockSize(n int) uint64 {
	return max((uint64(n)+headerBytes+h.guard+granule-1)&^(granule-1), minBlock)
}

// slice is the block at word i as the caller gets it.
func (h *Heap) slice(r *region, i uint64, n int) []byte {
	from := (i + 1) * wordBytes
	return r.mem[from : from+uint64(n) : from+h.usable(r, i)]
}

// usable is the number of bytes of the block at word i that the caller may use.
func (h *Heap) usable(r *region, i uint64) uint64 {
	return r.words[i]&^flagMask - headerBytes - h.guard
}

// allocSlow is Alloc for every case: any region, extras, the last resort, errors.
func (h *Heap) allocSlow(n int) ([]byte, error) {
	if n <= 0 {
		return nil, h.fail("alloc", ErrInvalidSize, int64(n))
	}
	need := h.blockSize(n)
	r, i, s := h.allocate(need)
	if s != noError {
		return nil, h.allocError("alloc", s, n, need)
	}
	if h.rare {
		h.writeExtras(r, i, n)
	}
	return h.slice(r, i, n), nil
}

// allocFrom is Alloc of the block that link names, the first of list, which search has found.
func (h *Heap) allocFrom(list, link uint64, n int, need uint64) ([]byte, error) {
	r, i, size, s := h.take(link, need)
	if s != noError {
		return nil, h.allocError("alloc", s, n, need)
	}
	if isCloseFit(need, list) {
		need = size
	}
	h.place(r, i, size, need)
	return h.slice(r, i, n), nil
}

// allocate finds a free block of at least need bytes, splits off the rest and marks it used.
func (h *Heap) allocate(need uint64) (*region, uint64, sentinel) {
	list, link := h.findLink(need)
	r, i, size, s := h.take(link, need)
	if s != noError {
		return nil, 0, s
	}
	if h.mayStayWhole(need, list) {
		need = size
	}
	h.place(r, i, size, need)
	return r, i, noError
}

// mayStayWhole reports whether a block from list is handed out whole for a request of need bytes. With footers it never is, so that
// the footer is right behind what was requested.
func (h *Heap) mayStayWhole(need, list uint64) bool { return h.guard == 0 && isCloseFit(need, list) }

// findLink is the link of the free block for a request of need bytes, 0 for none, and the list that search found it in, 0 for the
// top and the last resort.
func (h *Heap) findLink(need uint64) (list, link uint64) {
	list = h.search(need) & (listLen - 1)
	if link = h.heads[list]; link != 0 {
		return list, link
	}
	if h.topSize >= need {
		return 0, h.top
	}
	return 0, h.lastResort(need)
}

// lastResort searches the list that need itself belongs to, where some blocks have need bytes and some do not.
func (h *Heap) lastResort(need uint64) uint64 {
	previous := uint64(0)
	for link := h.heads[listOf(need)&(listLen-1)]; link != 0; {
		words, i := h.at(link)
		if words == nil || words[i+2] != previous {
			return damagedLink
		}
		if words[i]&^flagMask >= need {
			return link
		}
		previous, link = link, words[i+1]
	}
	return 0
}

// take checks the free block that link names, 0 for none, and removes it from its list.
func (h *Heap) take(link, need uint64) (r *region, i, size uint64, s sentinel) {
	if link == 0 {
		return nil, 0, 0, ErrNoMemory
	}
	words, i := h.at(link)
	if words == nil || words[i]&flagMask != flagFree {
		return nil, 0, 0, ErrCorrupted
	}
	r, size = h.region(link>>tagShift), words[i]&^flagMask
	if size < need || size/wordBytes > r.last()-i || !h.unlink(r, i, size) {
		return nil, 0, 0, ErrCorrupted
	}
	return r, i, size, noError
}

// place makes the unlisted memory of size bytes at word i a used block of need bytes and, if enough is left to be a block, a
// free one behind it.
func (h *Heap) place(r *region, i, size, need uint64) {
	end := i + size/wordBytes
	if rest := size - need; rest >= minBlock {
		tail := i + need/wordBytes
		r.makeFree(tail, rest)
		h.push(r, tail, rest)
		size = need
	} else {
		r.words[end] &^= flagPrevFree
	}
	r.words[i] = size | r.words[i]&flagPrevFree
	r.setStart(i)
	h.counters.noteAlloc(size)
}

// allocError distinguishes a request that can never fit from one that does not fit now.
func (h *Heap) allocError(op string, s sentinel, n int, need uint64) error {
	if s == ErrNoMemory && need > h.largestPossible() {
		s = ErrTooLarge
	}
	return h.fail(op, s, int64(n))
}

// largestPossible is the size of the one block that the largest region of an empty heap would be, the newest grown as far as it can be.
func (h *Heap) largestPossible() uint64 {
	largest := h.newest().mostBytes()
	for n := 0; n <= len(h.more); n++ {
		largest = max(largest, uint64(len(h.region(uint64(n)).mem)))
	}
	if largest < minRegion {
		return 0 // a heap without memory
	}
	return largest - frameBytes
}

// offsetOf is the offset of b in its region, -1 if it lies in none.
func (h *Heap) offsetOf(b []byte) int64 {
	if r, off := h.locate(raw.Address(b)); r != nil {
		return int64(off)
	}
	return -1
}
