package tlsf

// Allocation at a multiple of more than the granule.
//
//	        p                q
//	| header| gap            | payload        | tail
//	^ found block            ^ multiple of the alignment
//
// The gap in front is 0 or large enough to be a free block, so the search adds the alignment and one smallest block to
// the needed size.

import (
	"math/bits"

	"github.com/freestone-alloc/freestone/go/internal/raw"
)

// maxAlign is small enough that sums with an alignment do not wrap.
const maxAlign = 1 << 46

// AllocAligned is Alloc with the slice's address at a multiple of align, a power of two. Realloc does not keep an alignment
// above 16; ReallocAligned does.
//
// # Errors
//
// ErrInvalidAlignment, and those of Alloc.
func (h *Heap) AllocAligned(n, align int) ([]byte, error) {
	if align <= granule && validAlign(align) {
		return h.Alloc(n)
	}
	switch {
	case n <= 0:
		return nil, h.fail("aligned alloc", ErrInvalidSize, int64(n))
	case !validAlign(align):
		return nil, h.fail("aligned alloc", ErrInvalidAlignment, int64(n))
	}
	need := h.blockSize(n)
	r, i, s := h.allocateAligned(need, uint64(align))
	if s != noError {
		return nil, h.allocError("aligned alloc", s, n, need+uint64(align)+minBlock)
	}
	if h.rare {
		h.writeExtras(r, i, n)
	}
	return h.slice(r, i, n), nil
}

// validAlign reports whether align is a power of two within reason.
func validAlign(align int) bool {
	return align > 0 && uint64(align) <= maxAlign && bits.OnesCount(uint(align)) == 1
}

// allocateAligned is allocate for an alignment above the granule.
func (h *Heap) allocateAligned(need, align uint64) (*region, uint64, sentinel) {
	wide := need + align + minBlock
	_, link := h.findLink(wide)
	r, i, size, s := h.take(link, wide)
	if s != noError {
		return nil, 0, s
	}
	if gap := alignedGap(uint64(raw.Address(r.mem))+(i+1)*wordBytes, align); gap != 0 {
		front := i
		i += gap / wordBytes
		size -= gap
		r.words[front] = gap | flagFree
		r.words[i-1] = gap
		r.words[i] = flagPrevFree
		h.push(r, front, gap)
	}
	h.place(r, i, size, need)
	return r, i, noError
}

// alignedGap is how far the first usable multiple of align lies behind address: 0, or at least the smallest block.
func alignedGap(address, align uint64) uint64 {
	gap := -address & (align - 1)
	if gap != 0 && gap < minBlock {
		gap = minBlock + -(address+minBlock)&(align-1)
	}
	return gap
}
