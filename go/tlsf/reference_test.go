package tlsf_test

// The reference: the placement rules in their simplest form, over a sorted list of blocks and lists of
// offsets. It shares no code with the heap; streams and fuzzing compare the heap with it.

import (
	"math/bits"
	"slices"
)

type refBlock struct {
	at, size int // offset of the header; size with it
	used     bool
}

type reference struct {
	blocks []refBlock // in address order
	lists  map[[2]int][]int
	end    int // offset of the sentinel
	guard  int // bytes of footer
}

func newReference(regionLen, guard int) *reference {
	m := &reference{lists: map[[2]int][]int{}, end: regionLen - 8, guard: guard}
	m.blocks = []refBlock{{at: 8, size: regionLen - 16}}
	m.insert(m.blocks[0])
	return m
}

// levels are the first and second level of a size.
func levels(size int) [2]int {
	if size < 512 {
		return [2]int{0, size / 16}
	}
	e := bits.Len(uint(size)) - 1
	return [2]int{e - 8, size >> (e - 5) & 31}
}

// isTop reports whether a free block is the last, which is in no list.
func (m *reference) isTop(b refBlock) bool { return b.at+b.size == m.end }

func (m *reference) insert(b refBlock) {
	if m.isTop(b) {
		return
	}
	m.lists[levels(b.size)] = append([]int{b.at}, m.lists[levels(b.size)]...)
}

func (m *reference) remove(b refBlock) {
	if m.isTop(b) {
		return
	}
	list := m.lists[levels(b.size)]
	n := slices.Index(list, b.at)
	m.lists[levels(b.size)] = slices.Delete(list, n, n+1)
}

func (m *reference) index(at int) int {
	n, ok := slices.BinarySearchFunc(m.blocks, at, func(b refBlock, at int) int { return b.at - at })
	if !ok {
		return -1
	}
	return n
}

// number counts the lists of all levels in one row.
func number(level [2]int) int { return level[0]*32 + level[1] }

// isCloseFit reports whether the list of level best is one of the few from level least on whose blocks are not split: 4, but no more
// than 256 bytes, and none where there is a list for every size.
func isCloseFit(least, best [2]int) bool {
	return least[0] > 0 && number(best)-number(least) < min(4, 256>>(least[0]+3))
}

// search is the index of the free block that a request for size bytes gets, -1 for none, and whether it stays whole.
func (m *reference) search(size int) (n int, whole bool) {
	rounded := size
	if size >= 512 {
		rounded += 1<<(bits.Len(uint(size))-1-5) - 1
	}
	least, best, found := levels(rounded), [2]int{}, false
	for level, list := range m.lists {
		if len(list) > 0 && number(level) >= number(least) && (!found || number(level) < number(best)) {
			best, found = level, true
		}
	}
	if found {
		return m.index(m.lists[best][0]), isCloseFit(least, best)
	}
	if last := len(m.blocks) - 1; !m.blocks[last].used && m.blocks[last].size >= size {
		return last, false
	}
	for _, at := range m.lists[levels(size)] {
		if n := m.index(at); m.blocks[n].size >= size {
			return n, false
		}
	}
	return -1, false
}

func (m *reference) blockFor(n int) int { return max(32, (n+8+m.guard+15)/16*16) }

// alloc returns the payload's offset, -1 for a failure.
func (m *reference) alloc(n, align int) int {
	if n <= 0 {
		return -1
	}
	need := m.blockFor(n)
	size := need
	if align > 16 {
		size += align + 32
	}
	k, whole := m.search(size)
	if k < 0 {
		return -1
	}
	m.remove(m.blocks[k])
	if p := m.blocks[k].at + 8; align > 16 && p%align != 0 {
		q := (p + align - 1) / align * align
		if q-p < 32 {
			q = (p + 32 + align - 1) / align * align
		}
		rest := m.blocks[k].size - (q - p)
		m.blocks[k].size = q - p
		m.insert(m.blocks[k])
		k++
		m.blocks = slices.Insert(m.blocks, k, refBlock{at: q - 8, size: rest})
	}
	m.blocks[k].used = true
	if !whole || align > 16 || m.guard > 0 {
		m.cut(k, need)
	}
	return m.blocks[k].at + 8
}

// capacity is how many bytes of the block with this payload the caller may use.
func (m *reference) capacity(payload int) int { return m.blocks[m.index(payload-8)].size - 8 - m.guard }

// cut splits the unneeded end of block k off as a free block, which merges with a free block behind it.
func (m *reference) cut(k, need int) {
	rest := m.blocks[k].size - need
	if rest < 32 {
		return
	}
	m.blocks[k].size = need
	tail := refBlock{at: m.blocks[k].at + need, size: rest}
	if k+1 < len(m.blocks) && !m.blocks[k+1].used {
		m.remove(m.blocks[k+1])
		tail.size += m.blocks[k+1].size
		m.blocks[k+1] = tail
	} else {
		m.blocks = slices.Insert(m.blocks, k+1, tail)
	}
	m.insert(tail)
}

func (m *reference) free(payload int) {
	k := m.index(payload - 8)
	m.blocks[k].used = false
	if k > 0 && !m.blocks[k-1].used {
		k--
		m.remove(m.blocks[k])
		m.blocks[k].size += m.blocks[k+1].size
		m.blocks = slices.Delete(m.blocks, k+1, k+2)
	}
	if k+1 < len(m.blocks) && !m.blocks[k+1].used {
		m.remove(m.blocks[k+1])
		m.blocks[k].size += m.blocks[k+1].size
		m.blocks = slices.Delete(m.blocks, k+1, k+2)
	}
	m.insert(m.blocks[k])
}

func (m *reference) realloc(payload, n, align int) int {
	if n <= 0 {
		return -1
	}
	k, need := m.index(payload-8), m.blockFor(n)
	size := m.blocks[k].size
	if need <= size {
		m.cut(k, need)
		return payload
	}
	if k+1 < len(m.blocks) && !m.blocks[k+1].used && size+m.blocks[k+1].size >= need {
		m.remove(m.blocks[k+1])
		m.blocks[k].size += m.blocks[k+1].size
		m.blocks = slices.Delete(m.blocks, k+1, k+2)
		m.cut(k, need)
		return payload
	}
	moved := m.alloc(n, align)
	if moved >= 0 {
		m.free(payload)
	}
	return moved
}

func (m *reference) grow(n int) {
	if last := &m.blocks[len(m.blocks)-1]; !last.used {
		last.size += n
		m.end += n
		return
	}
	m.blocks = append(m.blocks, refBlock{at: m.end, size: n, used: true})
	m.end += n
	m.free(m.blocks[len(m.blocks)-1].at + 8)
}

// totals are used blocks, free blocks and free bytes.
func (m *reference) totals() (used, free, freeBytes int) {
	for _, b := range m.blocks {
		if b.used {
			used++
		} else {
			free++
			freeBytes += b.size
		}
	}
	return used, free, freeBytes
}
