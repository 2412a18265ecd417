package tlsf

// The two hot paths: Alloc and Free in the common case.
//
// They cover a heap without extras in which a block is cut from the front of the top, because no list has one that fits, and is
// returned to it: the case when buffers are allocated and freed in front of a large free rest. Then no list changes. In every other case they
// have changed nothing yet and continue with the named steps of alloc.go and free.go, which cover all cases: the outcome is the same.
//
// Cost: about 110 instructions for Alloc when the size is that of the last, 150 and one call otherwise, 100 for Free. Memory
// touched: the first line of the block and of the rest, the rest's last word, the heap's own lines. The bounds checks that the
// compiler leaves in take 5 % of the time.

import (
	"math/bits"

	"github.com/freestone-alloc/freestone/go/internal/raw"
)

// Alloc allocates n bytes. They are not cleared: they contain what was there before. The slice's
// capacity is the whole block, up to 495 bytes more than n; its start is a multiple of 16.
//
// # Errors
//
// ErrInvalidSize for n <= 0; ErrNoMemory; ErrTooLarge when no region could ever hold n, grown as far as it can; ErrCorrupted; ErrClosed.
//
// # Complexity
//
// O(1), no allocation on Go's heap. The exception is a request that neither a list above its own nor the top can serve: as a last
// resort, the request's own list is searched, and the time of that depends on the number of blocks.
func (h *Heap) Alloc(n int) ([]byte, error) {
	if n <= 0 || h.rare {
		return h.allocSlow(n)
	}
	need := max((uint64(n)+headerBytes+granule-1)&^(granule-1), minBlock)
	list := h.lastList & (listLen - 1)
	if need != h.lastNeed {
		list = h.search(need) & (listLen - 1)
		h.lastNeed, h.lastList = need, list
	}
	if link := h.heads[list]; link != 0 {
		return h.allocFrom(list, link, n, need)
	}
	words, i, size := h.first.words, h.top, h.topSize
	end, tail, rest := i+size/wordBytes, i+need/wordBytes, size-need
	if size < need+minBlock || end >= uint64(len(words)) || words[i] != size|flagFree || words[end-1] != size {
		return h.allocSlow(n)
	}
	words[end-1] = rest
	words[i] = need
	words[tail] = rest | flagFree
	h.top, h.topSize = tail, rest
	h.first.setStart(i)
	h.counters.noteAlloc(need)
	from := (i + 1) * wordBytes
	return h.first.mem[from : from+uint64(n) : from+need-headerBytes], nil
}

// Free frees the block. b is the slice as Alloc returned it; its length may differ. The block's memory, and every
// slice of it, belong to the heap from here on. Freeing nil does nothing.
//
// # Errors
//
// ErrForeign, ErrResliced, ErrDoubleFree, ErrOverrun, ErrCorrupted, ErrClosed. After an error nothing has changed, and the block, if
// it is one, is still in use.
//
// # Complexity
//
// O(1), no allocation on Go's heap. When a block is refused, the time depends on the number of blocks: the heap looks for what is wrong.
func (h *Heap) Free(b []byte) error {
	words := h.first.words
	off := uint64(raw.Address(b) - raw.Address(h.first.mem))
	i := off/wordBytes - 1
	if off%granule != 0 || i >= uint64(len(words)) || h.rare {
		return h.freeSlow(b)
	}
	size := uint64(cap(b)) + headerBytes
	end := i + size/wordBytes
	if !h.first.isStart(off) || words[i] != size || end+2 >= uint64(len(words)) {
		return h.freeSlow(b)
	}
	after := h.topSize
	last, whole := end+after/wordBytes-1, after+size
	if h.top != end || words[end] != after|flagFree || last >= uint64(len(words)) || words[last] != after {
		return h.freeBlock(&h.first, i, b)
	}
	words[last] = whole
	words[i] = whole | flagFree
	h.top, h.topSize = i, whole
	h.first.clearStart(i)
	h.counters.noteFree(size)
	return nil
}

// search is the first list that has a block, of those in which every block has need bytes; 0, which is always empty, for none.
func (h *Heap) search(need uint64) uint64 {
	list := searchFrom(need)
	fl := list >> secondLog2 & (firstLen - 1)
	second := h.secondLevel[fl] & (^uint32(0) << (list & (secondLen - 1)))
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
