package tlsf

// Check: the invariants of the heap as code.

import (
	"fmt"
	"math/bits"
)

// Check walks every block and every list and returns the first broken invariant as an error (errors.Is ErrCorrupted, or
// ErrOverrun for a footer), nil when all hold. O(number of blocks).
func (h *Heap) Check() error {
	if h.isClosed {
		return h.fail("check", ErrClosed, -1)
	}
	sum := tally{}
	for n := 0; n <= len(h.more); n++ {
		if err := h.checkRegion(h.region(uint64(n)), &sum); err != nil {
			return err
		}
	}
	if err := h.checkLists(sum.freeBlocks); err != nil {
		return err
	}
	return h.checkCounters(sum)
}

// tally is the counts of a walk over the blocks.
type tally struct{ usedBlocks, usedBytes, freeBlocks, freeBytes uint64 }

// broken is an invariant that does not hold for the block at word i.
func broken(i uint64, format string, args ...any) error {
	return &Error{Op: "check", Err: ErrCorrupted, Offset: int64((i + 1) * wordBytes), Size: -1, Detail: fmt.Sprintf(format, args...)}
}

// skewed is an invariant of the heap as a whole that does not hold.
func skewed(format string, args ...any) error {
	return &Error{Op: "check", Err: ErrCorrupted, Offset: -1, Size: -1, Detail: fmt.Sprintf(format, args...)}
}

// checkRegion: the blocks cover the region without a gap; neighbours' flags and sizes agree; no two free blocks touch; every
// free block is linked; the map of starts has exactly the used blocks; footers are whole.
func (h *Heap) checkRegion(r *region, sum *tally) error {
	if len(r.words) == 0 {
		return nil // a zero Heap has no memory
	}
	starts, before := uint64(0), uint64(0)
	for i := uint64(1); i < r.last(); {
		head := r.words[i]
		size := head &^ flagMask
		if !r.isPlausible(i, head) {
			return broken(i, "header %#x cannot be", head)
		}
		if err := r.checkNeighbour(i, head, before); err != nil {
			return err
		}
		if head&flagFree != 0 {
			if !h.isLinked(r, i, size) {
				return broken(i, "free block of %d bytes is not in its list", size)
			}
			sum.freeBlocks++
			sum.freeBytes += size
			before = size
		} else {
			if !r.isStart((i + 1) * wordBytes) {
				return broken(i, "used block is missing in the map of starts")
			}
			if !h.footerHolds(r, i) {
				return &Error{Op: "check", Err: ErrOverrun, Offset: int64((i + 1) * wordBytes), Size: int64(h.usable(r, i)),
					Detail: h.siteOf(h.slice(r, i, 1))}
			}
			starts++
			sum.usedBytes += size
			before = 0
		}
		i += size / wordBytes
	}
	sum.usedBlocks += starts
	for _, word := range r.starts {
		starts -= uint64(bits.OnesCount64(word))
	}
	if starts != 0 {
		return skewed("the map of starts has %d blocks too many", -int64(starts))
	}
	return r.checkNeighbour(r.last(), r.words[r.last()], before)
}

// checkNeighbour: the header at word i agrees with the block before, which is free and of size before, or used (0).
func (r *region) checkNeighbour(i, head, before uint64) error {
	switch {
	case i == r.last() && head&^flagPrevFree != 0:
		return broken(i, "sentinel is %#x", head)
	case head&flagPrevFree != 0 != (before != 0):
		return broken(i, "flag of the previous block is wrong: header %#x", head)
	case before != 0 && r.words[i-1] != before:
		return broken(i, "previous block's size is %d, its last word says %d", before, r.words[i-1])
	case before != 0 && head&flagFree != 0:
		return broken(i, "two free blocks touch")
	}
	return nil
}

// checkLists: every list contains only free blocks of its own sizes; lists and top together have as many as the regions; and the bits
// of both levels are set exactly for the lists that have any.
func (h *Heap) checkLists(freeBlocks uint64) error {
	seen := uint64(0)
	if h.topSize != 0 {
		seen = 1
	}
	for list := range uint64(listLen) {
		fl, sl := list>>secondLog2, list&(secondLen-1)
		if has := h.heads[list] != 0; has != (h.secondLevel[fl]>>sl&1 != 0) {
			return skewed("second-level bit %d of first level %d is wrong", sl, fl)
		}
		if h.secondLevel[fl] != 0 != (h.firstLevel>>fl&1 != 0) {
			return skewed("first-level bit %d is wrong", fl)
		}
		for link := h.heads[list]; link != 0; {
			words, i := h.at(link)
			if words == nil || words[i]&flagFree == 0 || listOf(words[i]&^flagMask) != list {
				return broken(link&indexMask, "list %d holds a block of another list", list)
			}
			if seen++; seen > freeBlocks {
				return broken(i, "lists hold more than the %d free blocks", freeBlocks)
			}
			link = words[i+1]
		}
	}
	if seen != freeBlocks {
		return skewed("lists hold %d of %d free blocks", seen, freeBlocks)
	}
	return nil
}

// checkCounters: the counters agree with the walk.
func (h *Heap) checkCounters(sum tally) error {
	c := h.counters
	kept := tally{c.allocs - c.frees, c.usedBytes, c.freeBlocks, c.totalBytes - c.usedBytes}
	if kept != sum {
		return skewed("counters %+v, blocks %+v", kept, sum)
	}
	return nil
}
