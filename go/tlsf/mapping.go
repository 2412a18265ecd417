package tlsf

// Which list a size belongs to.
//
// Below 512 bytes there is a list for every multiple of the granule; above, every power of two is divided into 32 lists of
// equal width. A list's number is first level * 32 + second level. The formula is the same for both
// halves, because a size below 512 is treated as if its power of two were 512:
//
//	size   16 .. 496   512 .. 1008   1024 .. 2016   2048 .. 4032 ...
//	list    1 .. 31     32 .. 63       64 .. 95       96 .. 127
//	width      16          16            32             64
//
// A block is a close fit for a request when it comes from one of the first few lists whose blocks are large enough. It is handed out whole, because the
// remainder is not worth cutting off and merging again: 4 lists, but no more than 256 bytes; none below 512 bytes or from 16 KiB up.
//
// Invariants: listOf never falls when size rises; every block in list searchFrom(n) or above holds n bytes; a close
// fit exceeds the request by at most 480 bytes, and a seventh of it.
// Cost: a handful of instructions, no branch. Source: Masmano, Ripoll, Crespo, Real, "TLSF: a new dynamic memory
// allocator for real-time systems", 2004.

import "math/bits"

const (
	// secondLog2 is the number of lists for each power of two, as a logarithm.
	secondLog2 = 5
	// secondLen is the number of lists for each power of two.
	secondLen = 1 << secondLog2
	// linearLog2 is the logarithm of the size where the powers of two begin: the smallest size of which a 32nd is one granule.
	linearLog2 = granuleLog2 + secondLog2
	// firstLen is the number of first levels: enough for any size that fits into 64 bits.
	firstLen = 64
	// listLen is the number of lists.
	listLen = firstLen * secondLen
)

// listOf is the list in which a free block of this size is kept. size is a multiple of the granule.
func listOf(size uint64) uint64 {
	e := uint64(bits.Len64(size|1<<linearLog2)) - 1
	return (e-linearLog2)<<secondLog2 + size>>((e-secondLog2)&63)
}

// searchFrom is the first list in which every block holds size bytes.
func searchFrom(size uint64) uint64 {
	e := uint64(bits.Len64(size|1<<linearLog2)) - 1
	return (e-linearLog2)<<secondLog2 + (size-1)>>((e-secondLog2)&63) + 1
}

// closeFits is the number of lists that hold close fits for a request, by the first level in which its search begins.
var closeFits = [firstLen]uint8{1: 4, 2: 4, 3: 4, 4: 2, 5: 1}

// isCloseFit reports whether list is so close to the first in which every block holds need bytes that its blocks are handed out whole.
func isCloseFit(need, list uint64) bool {
	least := searchFrom(need)
	return list-least < uint64(closeFits[least>>secondLog2&(firstLen-1)])
}
