package tlsf

// Walking all blocks in address order, and diagnosing a slice that is not a block.

import (
	"iter"

	"github.com/freestone-alloc/freestone/go/internal/raw"
)

// Block is one block as Blocks yields it.
type Block struct {
	Region int    // the region's number, in the order they were added
	Offset uint64 // where its payload starts in the region
	Size   uint64 // its size with the header
	Used   bool
}

// Blocks yields all blocks, used and free, in address order within each region. The heap must not be changed
// meanwhile. The walk ends early at a damaged header; Check reports it.
func (h *Heap) Blocks() iter.Seq[Block] {
	return func(yield func(Block) bool) {
		for n := 0; n <= len(h.more) && !h.isClosed; n++ {
			r := h.region(uint64(n))
			for i := uint64(1); i+1 < uint64(len(r.words)); { // a zero Heap's region has no word
				head := r.words[i]
				if !r.isPlausible(i, head) {
					return
				}
				if !yield(Block{Region: n, Offset: (i + 1) * wordBytes, Size: head &^ flagMask, Used: head&flagFree == 0}) {
					return
				}
				i += head / granule * granule / wordBytes
			}
		}
	}
}

// isPlausible reports whether a block with this header can be at word i.
func (r *region) isPlausible(i, head uint64) bool {
	size := head &^ flagMask
	return head&flagMask&^(flagFree|flagPrevFree) == 0 && size >= minBlock && size/wordBytes <= r.last()-i
}

// notBlock is the error for a slice that is not a used block. It walks the region to find out what the slice is instead.
func (h *Heap) notBlock(op string, b []byte) error {
	if b == nil {
		return nil
	}
	return h.blockError(op, h.classify(b), b)
}

func (h *Heap) classify(b []byte) sentinel {
	off := h.offsetOf(b)
	if off < 0 {
		return ErrForeign
	}
	r, _ := h.locate(raw.Address(b))
	for i := uint64(1); i < r.last(); {
		head := r.words[i]
		if !r.isPlausible(i, head) {
			return ErrCorrupted
		}
		i += head &^ flagMask / wordBytes
		if uint64(off) < (i+1)*wordBytes {
			if head&flagFree != 0 {
				return ErrDoubleFree
			}
			return ErrResliced
		}
	}
	return ErrForeign
}

// blockError is an error about a slice.
func (h *Heap) blockError(op string, s sentinel, b []byte) error {
	e := &Error{Op: op, Err: s, Offset: h.offsetOf(b), Size: int64(cap(b)), Detail: h.siteOf(b)}
	if h.isClosed {
		e.Err = ErrClosed
	}
	return e
}
