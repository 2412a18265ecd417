package tlsf

// The rarely used extras of a block: an overrun footer, and the call site that allocated it. One flag, Heap.rare, covers both, so
// a heap without them pays for one predicted branch.
//
//	| header | payload ... up to the slice's capacity | footer |
//
// The footer is the last word of the block: a pattern mixed with the block's place, so that a footer copied from
// elsewhere is not accepted. Go's bounds checks keep slices from reaching it; unsafe, assembly and system calls can.

const (
	footerBytes   = 8
	footerPattern = 0xf5ee_570e_a110_c8ed
)

// WithFooters puts an 8-byte footer behind each block, which Free, Realloc and Check verify: an overrun through unsafe is then found.
func WithFooters() Option {
	return func(h *Heap) sentinel {
		h.guard, h.rare = footerBytes, true
		return noError
	}
}

// footer is the correct footer of the block at word i.
func (r *region) footer(i uint64) uint64 { return footerPattern ^ (r.tag|i)*0x9e37_79b9_7f4a_7c15 }

// footerHolds reports whether the footer of the used block at word i is intact. True without footers.
func (h *Heap) footerHolds(r *region, i uint64) bool {
	end := i + r.words[i]/granule*granule/wordBytes
	return h.guard == 0 || end < uint64(len(r.words)) && r.words[end-1] == r.footer(i)
}

// writeExtras writes the extras of a block that was just allocated or resized.
func (h *Heap) writeExtras(r *region, i uint64, n int) {
	if h.guard != 0 {
		r.words[i+r.words[i]/granule*granule/wordBytes-1] = r.footer(i)
	}
	if h.callSites != nil {
		h.callSites.note(r.tag|i, n)
	}
}

// clearExtras removes the extras of a block that is about to be freed.
func (h *Heap) clearExtras(r *region, i uint64) {
	if h.callSites != nil {
		h.callSites.forget(r.tag | i)
	}
}
