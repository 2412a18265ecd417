package tlsf

// Allocation, in named steps: search → take from the list → split → mark used.
//
// Cost: two bit scans, one list removal and, when the block is larger than needed, one insertion; independent of the
// number of blocks and of their size. The exception is the last resort, a walk of one list that happens only when the
// request would fail otherwise.

import (
	"math/bits"

	"github.com/freestone-alloc/freestone/go/internal/raw"
)

// Alloc takes n bytes from the heap. The bytes are not cleared: they hold what was there before. The slice's
// capacity is the whole block, up to 31 bytes more than n; its start is a multiple of 16.
//
// # Errors
//
// ErrInvalidSize for n <= 0; ErrNoMemory; ErrTooLarge when no region could ever hold n; ErrCorrupted; ErrClosed.
//
// # Complexity
//
// O(1), no allocation on Go's heap.
func (h *Heap) Alloc(n int) ([]byte, error) {
	if n <= 0 {
		return nil, h.fail("alloc", ErrInvalidSize, int64(n))
	}
	need := h.blockSize(n)
	r, i, s := h.allocate(need)
	if s != noError {
		return nil, h.allocError("alloc", s, n, need)
	}
	if h.rare {
		h.dress(r, i, n)
	}
	return h.slice(r, i, n), nil
}

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

// slice is the block at word i as the caller sees it.
func (h *Heap) slice(r *region, i uint64, n int) []byte {
	from := (i + 1) * wordBytes
	return r.mem[from : from+uint64(n) : from+h.usable(r, i)]
}

// usable is how many bytes of the block at word i are the caller's.
func (h *Heap) usable(r *region, i uint64) uint64 {
	return r.words[i]&^flagMask - headerBytes - h.guard
}

// allocate finds a free block of at least need bytes, cuts off what is not needed and marks it used.
func (h *Heap) allocate(need uint64) (*region, uint64, sentinel) {
	list := h.search(need)
	link := h.heads[list&(listLen-1)]
	if link == 0 {
		return h.allocateLastResort(need)
	}
	r := &h.first
	if link > indexMask {
		r = h.region(link >> tagShift)
	}
	i, words := link&indexMask, r.words
	if i+2 >= uint64(len(words)) {
		return nil, 0, ErrCorrupted
	}
	size, next := words[i]-flagFree, words[i+1]
	end := i + size/wordBytes
	if size%granule != 0 || size < need || end >= uint64(len(words)) || words[i+2] != 0 {
		return nil, 0, ErrCorrupted
	}
	rest := size - need
	if rest < minBlock || listOf(rest) != list || next != 0 && !h.setPrevious(next, link, link+need/wordBytes) {
		if !h.pop(list, link, next) {
			return nil, 0, ErrCorrupted
		}
		h.place(r, i, size, need)
		return r, i, noError
	}
	// What is left stays in the same list, in the same place: no bit changes.
	tail := i + need/wordBytes
	words[end-1] = rest
	words[i] = need
	block := words[tail : tail+3 : tail+3]
	block[0], block[1], block[2] = rest|flagFree, next, 0
	h.heads[list&(listLen-1)] = link + need/wordBytes
	r.setStart(i)
	h.counters.noteAlloc(need)
	return r, i, noError
}

// search is the first list with a block in it of those whose blocks all hold need bytes; 0, which is always empty, for none.
func (h *Heap) search(need uint64) uint64 {
	list := searchFrom(need)
	fl := list >> secondLog2 & (firstLen - 1)
	second := h.secondLevel[fl] >> (list & (secondLen - 1)) << (list & (secondLen - 1))
	if second == 0 {
		first := h.firstLevel &^ (2<<fl - 1)
		if first == 0 {
			return 0
		}
		fl = uint64(bits.TrailingZeros64(first)) & (firstLen - 1)
		second = h.secondLevel[fl]
	}
	return fl<<secondLog2 | uint64(bits.TrailingZeros32(second))
}

// allocateLastResort is allocate when search has found nothing.
func (h *Heap) allocateLastResort(need uint64) (*region, uint64, sentinel) {
	r, i, size, s := h.take(h.lastResort(need), need)
	if s == noError {
		h.place(r, i, size, need)
	}
	return r, i, s
}

// lastResort looks in the list that need itself belongs to, where some blocks hold need bytes and some do not.
func (h *Heap) lastResort(need uint64) uint64 {
	for link := h.heads[listOf(need)&(listLen-1)]; link != 0; {
		words, i := h.at(link)
		if words == nil || words[i]&^flagMask >= need {
			return link
		}
		link = words[i+1]
	}
	return 0
}

// take checks the free block behind link, 0 for none, and takes it out of its list.
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

// allocError tells a request that can never fit from one that does not fit now.
func (h *Heap) allocError(op string, s sentinel, n int, need uint64) error {
	if s == ErrNoMemory && need > h.largestPossible() {
		s = ErrTooLarge
	}
	return h.fail(op, s, int64(n))
}

// largestPossible is the size of the block that an empty heap's largest region would be.
func (h *Heap) largestPossible() uint64 {
	largest := uint64(0)
	for n := 0; n <= len(h.more); n++ {
		if size := uint64(len(h.region(uint64(n)).mem)); size >= minRegion {
			largest = max(largest, size-frameBytes)
		}
	}
	return largest
}

// offsetOf is where b starts in the region that it lies in, -1 if it lies in none.
func (h *Heap) offsetOf(b []byte) int64 {
	if r, off := h.locate(raw.Address(b)); r != nil {
		return int64(off)
	}
	return -1
}
