package tlsf

// Statistics: a few counters that the hot paths maintain, and figures derived from them and from the lists.

import "math/bits"

type counters struct {
	allocs, frees uint64
	usedBytes     uint64 // sizes of used blocks, headers included
	peakBytes     uint64
	totalBytes    uint64 // all blocks
	freeBlocks    uint64
}

func (c *counters) noteAlloc(size uint64) {
	c.allocs++
	c.usedBytes += size
	c.peakBytes = max(c.peakBytes, c.usedBytes)
}

func (c *counters) noteFree(size uint64) {
	c.frees++
	c.usedBytes -= size
}

func (c *counters) noteResize(from, to uint64) {
	c.usedBytes += to - from
	c.peakBytes = max(c.peakBytes, c.usedBytes)
}

// Stats is what a heap holds. Bytes of blocks include their 8-byte headers, and footers if there are any.
type Stats struct {
	Regions       int     `json:"regions"`
	RegionBytes   uint64  `json:"region_bytes"`   // all memory given to the heap
	UsedBlocks    uint64  `json:"used_blocks"`    //
	UsedBytes     uint64  `json:"used_bytes"`     //
	PeakBytes     uint64  `json:"peak_bytes"`     // the peak of UsedBytes
	FreeBlocks    uint64  `json:"free_blocks"`    //
	FreeBytes     uint64  `json:"free_bytes"`     //
	LargestFree   uint64  `json:"largest_free"`   // the largest free block: a request 8 bytes smaller succeeds
	OverheadBytes uint64  `json:"overhead_bytes"` // headers, footers and region frames
	Fragmentation float64 `json:"fragmentation"`  // 1 - LargestFree/FreeBytes; 0 when nothing is free
	Allocs        uint64  `json:"allocs"`         // since New; a Realloc that moves is an alloc and a free
	Frees         uint64  `json:"frees"`          //
}

// Stats returns the statistics; all are 0 after Close. O(1) except for LargestFree, which walks the list of the largest blocks.
func (h *Heap) Stats() Stats {
	if h.isClosed {
		return Stats{}
	}
	c := &h.counters
	s := Stats{
		Regions:     1 + len(h.more),
		RegionBytes: c.totalBytes + uint64(1+len(h.more))*frameBytes,
		UsedBlocks:  c.allocs - c.frees,
		UsedBytes:   c.usedBytes,
		PeakBytes:   c.peakBytes,
		FreeBlocks:  c.freeBlocks,
		FreeBytes:   c.totalBytes - c.usedBytes,
		LargestFree: h.largestFree(),
		Allocs:      c.allocs,
		Frees:       c.frees,
	}
	s.OverheadBytes = s.UsedBlocks*(headerBytes+h.guard) + s.RegionBytes - c.totalBytes
	if s.FreeBytes > 0 {
		s.Fragmentation = 1 - float64(s.LargestFree)/float64(s.FreeBytes)
	}
	return s
}

// largestFree is the size of the largest free block: it is the top, or in the highest list that has one.
func (h *Heap) largestFree() uint64 {
	if h.firstLevel == 0 {
		return h.topSize
	}
	fl := bits.Len64(h.firstLevel) - 1
	sl := bits.Len32(h.secondLevel[fl]) - 1
	largest, previous := h.topSize, uint64(0)
	for link := h.heads[fl<<secondLog2|sl]; link != 0; {
		words, i := h.at(link)
		if words == nil || words[i+2] != previous {
			break
		}
		largest = max(largest, words[i]&^flagMask)
		previous, link = link, words[i+1]
	}
	return largest
}

// Add sums the statistics of several heaps into one; LargestFree is the largest of any.
func (s Stats) Add(t Stats) Stats {
	s.Regions += t.Regions
	s.RegionBytes += t.RegionBytes
	s.UsedBlocks += t.UsedBlocks
	s.UsedBytes += t.UsedBytes
	s.PeakBytes += t.PeakBytes
	s.FreeBlocks += t.FreeBlocks
	s.FreeBytes += t.FreeBytes
	s.LargestFree = max(s.LargestFree, t.LargestFree)
	s.OverheadBytes += t.OverheadBytes
	s.Allocs += t.Allocs
	s.Frees += t.Frees
	s.Fragmentation = 0
	if s.FreeBytes > 0 {
		s.Fragmentation = 1 - float64(s.LargestFree)/float64(s.FreeBytes)
	}
	return s
}
