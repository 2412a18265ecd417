package tlsf

// A region: the memory that blocks are cut from, and the map of block starts beside it.
//
//	byte    0        8        16                                   len-8     len
//	        +--------+--------+-----------------+--------+-- ... --+---------+
//	        | unused | header | payload ...     | header | payload | sentinel|
//	        +--------+--------+-----------------+--------+-- ... --+---------+
//	word    0        1        2
//
// A header is one word: the block's size in bytes (a multiple of 16: the distance to the next header) and two flags in
// its low bits. While a block is free its payload holds the two list links and, in its last word, its size again, so that
// the block behind it finds its start:
//
//	used:   | header | payload, to the next header              |
//	free:   | header | next | previous | ...             | size |
//
// Invariants: headers lie at odd words; sizes are multiples of 16 and at least 32; two free blocks never touch; the
// sentinel is a used block of size 0; a bit of starts is set exactly where the payload of a used block begins.
// The map of starts is outside the region, so that no content of a block can pass for a header: a slice is a block if and only
// if its bit is set. It costs 1/128 of the region, on Go's heap.
// A region belongs to its Heap; there is no locking here.

import (
	"math/bits"

	"github.com/freestone-alloc/freestone/go/internal/raw"
)

const (
	granuleLog2 = 4
	granule     = 1 << granuleLog2
	wordBytes   = 8
	headerBytes = 8
	minBlock    = 32
	// frameBytes is the size of a region's first word and its sentinel.
	frameBytes = 16
	minRegion  = frameBytes + minBlock

	flagFree     = 1 // this block is free
	flagPrevFree = 2 // the block before this one is free
	flagMask     = granule - 1

	// A link names a block: the number of its region and the word of its header. 0 is no block.
	tagShift  = 48
	indexMask = 1<<tagShift - 1
	maxLen    = 1 << 47
	// damagedLink names no block: take reports it as a damaged list.
	damagedLink = 1<<64 - 1
	// maxRegions keeps tags well within 16 bits.
	maxRegions = 1 << 14
)

type region struct {
	words  []uint64 // the memory, as words
	mem    []byte   // the memory, as bytes; its capacity is how far it can grow
	starts []uint64 // one bit per granule
	tag    uint64   // the region's number, in link position
}

// newRegion makes a region of mem, without any block in it.
func newRegion(mem []byte, number int) (*region, sentinel) {
	switch address := raw.Address(mem); {
	case address == 0:
		return nil, ErrRegionNil
	case address%granule != 0:
		return nil, ErrRegionMisaligned
	case len(mem) < minRegion:
		return nil, ErrRegionTooSmall
	case uint64(len(mem)) > maxLen:
		return nil, ErrRegionTooLarge
	}
	r := &region{mem: mem[:len(mem)&^(granule-1)], tag: uint64(number) << tagShift}
	r.words = raw.Words(r.mem)
	r.starts = make([]uint64, startsLen(len(r.mem)))
	return r, noError
}

// startsLen is the number of words that a map of starts needs.
func startsLen(bytes int) int {
	return (bytes>>granuleLog2 + 63) / 64
}

// sentinel's word index.
func (r *region) last() uint64 { return uint64(len(r.words)) - 1 }

// mostBytes is how long the region can become. A growth is minBlock or more.
func (r *region) mostBytes() uint64 {
	now, most := uint64(len(r.mem)), min(uint64(cap(r.mem)), maxLen)&^(granule-1)
	if most < now+minBlock {
		return now
	}
	return most
}

// extend lengthens the region by n bytes of its capacity and returns the word of the old sentinel.
func (r *region) extend(n int) uint64 {
	old := r.last()
	r.mem = r.mem[:len(r.mem)+n]
	r.words = raw.Words(r.mem)
	r.starts = append(r.starts, make([]uint64, startsLen(len(r.mem))-len(r.starts))...)
	return old
}

// isStart reports whether the payload of a used block begins at byte offset off.
func (r *region) isStart(off uint64) bool {
	g := off >> granuleLog2
	return off%granule == 0 && g>>6 < uint64(len(r.starts)) && r.starts[g>>6]>>(g&63)&1 != 0
}

// setStart and clearStart keep the map of starts; i is the header's word.
func (r *region) setStart(i uint64)   { r.starts[(i+1)>>7] |= 1 << ((i + 1) >> 1 & 63) }
func (r *region) clearStart(i uint64) { r.starts[(i+1)>>7] &^= 1 << ((i + 1) >> 1 & 63) }

// nextStart is the byte offset of the first used payload at or behind off, and whether there is one.
func (r *region) nextStart(off uint64) (uint64, bool) {
	g := (off + granule - 1) >> granuleLog2
	for w := g >> 6; w < uint64(len(r.starts)); w++ {
		word := r.starts[w]
		if w == g>>6 {
			word = word >> (g & 63) << (g & 63)
		}
		if word != 0 {
			return (w<<6 + uint64(bits.TrailingZeros64(word))) << granuleLog2, true
		}
	}
	return 0, false
}
