package tlsf

// Offsets: numbers for blocks, which may be stored inside blocks, where Go pointers may not.

import (
	"fmt"
	"math"
)

// Offset is a number for the block b: where it starts in its region, in bytes, with the region's number in the
// top 16 bits. It is never 0. It stays valid until the block is freed or moved.
func (h *Heap) Offset(b []byte) (uint64, error) {
	r, i, ok := h.find(b)
	if !ok {
		return 0, h.blockError("offset", h.classify(b), b)
	}
	return r.tag | (i+1)*wordBytes, nil
}

// At is the block with this offset, at its full capacity.
//
// # Errors
//
// ErrForeign when no used block starts there; ErrCorrupted when its header was overwritten; ErrClosed.
func (h *Heap) At(offset uint64) ([]byte, error) {
	r := h.region(offset >> tagShift)
	off := offset & indexMask
	if h.isClosed || r == nil || !r.isStart(off) {
		return nil, h.noBlockAt(offset)
	}
	i := off/wordBytes - 1
	if head := r.words[i]; head&flagFree != 0 || !r.isPlausible(i, head) {
		return nil, &Error{Op: "at", Err: ErrCorrupted, Offset: int64(offset), Size: -1}
	}
	return h.slice(r, i, int(h.usable(r, i))), nil
}

// noBlockAt is the error of At for an offset that it was passed. No block has an offset beyond Error's field; such a one is in the text.
func (h *Heap) noBlockAt(offset uint64) error {
	e := &Error{Op: "at", Err: ErrForeign, Offset: int64(offset), Size: -1, Detail: "no used block starts there"}
	if offset > math.MaxInt64 {
		e.Offset, e.Detail = -1, fmt.Sprintf("no used block starts at %#x", offset)
	}
	if h.isClosed {
		e.Err = ErrClosed
	}
	return e
}
