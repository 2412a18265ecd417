package tlsf_test

// Streams of operations against the reference, which gives the offset of each block, and a shadow of each block's
// contents. The same driver serves fuzzing and the random model test.

import (
	"math/rand/v2"
	"testing"

	"github.com/freestone-alloc/freestone/go/internal/raw"
	"github.com/freestone-alloc/freestone/go/tlsf"
)

// shadow is a used block's expected contents.
type shadow struct {
	b       []byte
	at      int // offset that the reference gave
	align   int
	pattern byte
}

// modelRun drives a heap and the reference with the same operations.
type modelRun struct {
	t         testing.TB
	heap      *tlsf.Heap
	mem       []byte
	reference *reference
	blocks    map[byte]*shadow
	capacity  int
}

const (
	modelRegion   = 1 << 13
	modelCapacity = 1 << 16
)

// newModelRun makes the heap plain, with footers (1), or with call sites (2), for which every request takes the slow path.
func newModelRun(t testing.TB, kind uint64) *modelRun {
	mem := alignedRegion(modelRegion, modelCapacity)
	var options []tlsf.Option
	guard := 0
	switch kind {
	case 1:
		options, guard = append(options, tlsf.WithFooters()), 8
	case 2:
		options = append(options, tlsf.WithCallSites(1))
	}
	heap, err := tlsf.New(mem, options...)
	if err != nil {
		t.Fatal(err)
	}
	return &modelRun{t: t, heap: heap, mem: mem, reference: newReference(modelRegion, guard),
		blocks: map[byte]*shadow{}, capacity: modelRegion}
}

// step plays one operation, given as four bytes.
func (m *modelRun) step(kind, id, low, high byte) {
	m.t.Helper()
	size, align := int(low)|int(high&15)<<8, 1<<(high>>4%13)
	s := m.blocks[id]
	switch {
	case kind%8 == 7 && size%5 == 0:
		m.grow(32 + size&^15)
	case s == nil:
		b, err := m.heap.AllocAligned(size, align)
		m.place(id, &shadow{align: align}, b, err, m.reference.alloc(size, align), size)
	case kind%8 < 3:
		old := *s
		m.intact(s)
		b, err := m.heap.ReallocAligned(s.b, size, s.align)
		at := m.reference.realloc(s.at, size, s.align)
		if m.place(id, s, b, err, at, size) {
			m.holds(s.b[:min(size, len(old.b))], old.pattern)
			m.fill(s, kind)
		}
	default:
		m.intact(s)
		err := error(nil)
		if kind&8 == 0 {
			err = m.heap.Free(s.b)
		} else {
			err = m.heap.FreeSized(&s.b[0], len(s.b))
		}
		if err != nil {
			m.t.Fatal(err)
		}
		m.reference.free(s.at)
		delete(m.blocks, id)
	}
}

// place compares an allocation with the reference and records it.
func (m *modelRun) place(id byte, s *shadow, b []byte, err error, at, size int) bool {
	m.t.Helper()
	if (err == nil) != (at >= 0) {
		m.t.Fatalf("%d bytes: heap says %v, reference %d", size, err, at)
	}
	if err != nil {
		return false
	}
	off := int(raw.Address(b) - raw.Address(m.mem))
	if off != at || off%max(16, s.align) != 0 || len(b) != size || cap(b) != m.reference.capacity(at) || cap(b) > size+495 {
		m.t.Fatalf("%d bytes at alignment %d: offset %d, reference %d, length %d, capacity %d, reference %d",
			size, s.align, off, at, len(b), cap(b), m.reference.capacity(at))
	}
	fresh := m.blocks[id] == nil
	s.b, s.at = b, at
	m.blocks[id] = s
	if fresh {
		m.fill(s, id)
	}
	return true
}

func (m *modelRun) fill(s *shadow, pattern byte) {
	s.pattern = pattern
	for n := range s.b[:cap(s.b)] {
		s.b[:cap(s.b)][n] = pattern
	}
}

func (m *modelRun) intact(s *shadow) { m.t.Helper(); m.holds(s.b[:cap(s.b)], s.pattern) }

func (m *modelRun) holds(b []byte, pattern byte) {
	m.t.Helper()
	for n, x := range b {
		if x != pattern {
			m.t.Fatalf("byte %d of %d is %#x, want %#x", n, len(b), x, pattern)
		}
	}
}

func (m *modelRun) grow(n int) {
	m.t.Helper()
	fits := m.capacity+n <= modelCapacity
	if err := m.heap.GrowRegion(n); (err == nil) != fits {
		m.t.Fatalf("GrowRegion(%d): %v", n, err)
	}
	if fits {
		m.capacity += n
		m.reference.grow(n)
	}
}

// finish checks, compares totals, frees everything and expects one free block.
func (m *modelRun) finish() {
	m.t.Helper()
	if err := m.heap.Check(); err != nil {
		m.t.Fatal(err)
	}
	used, free, freeBytes := m.reference.totals()
	stats := m.heap.Stats()
	if int(stats.UsedBlocks) != used || int(stats.FreeBlocks) != free || int(stats.FreeBytes) != freeBytes {
		m.t.Fatalf("%v, reference %d used, %d free of %d bytes", stats, used, free, freeBytes)
	}
	if leaks := m.heap.Leaks(); len(leaks) != len(m.blocks) {
		m.t.Fatalf("%d leaks, %d blocks in use", len(leaks), len(m.blocks))
	}
	for _, s := range m.blocks {
		m.intact(s)
		if err := m.heap.Free(s.b); err != nil {
			m.t.Fatal(err)
		}
	}
	stats = m.heap.Stats()
	if stats.FreeBlocks != 1 || stats.UsedBytes != 0 || stats.LargestFree != uint64(m.capacity-16) {
		m.t.Fatalf("after freeing everything: %v", stats)
	}
	if err := m.heap.Check(); err != nil {
		m.t.Fatal(err)
	}
	if err := m.heap.Close(); err != nil {
		m.t.Fatal(err)
	}
}

func FuzzOps(f *testing.F) {
	rng := rand.New(rand.NewPCG(11, 12))
	for n := range 20 {
		data := make([]byte, 1+4*n*n)
		for k := range data {
			data[k] = byte(rng.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		m := newModelRun(t, uint64(data[0]%3))
		for ops := data[1:]; len(ops) >= 4; ops = ops[4:] {
			m.step(ops[0], ops[1]&31, ops[2], ops[3])
			if err := m.heap.Check(); err != nil {
				t.Fatal(err)
			}
		}
		m.finish()
	})
}

func TestRandomOperationsAgreeWithTheReference(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 8
	}
	for seed := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(seed, 5))
		m := newModelRun(t, seed%5)
		for range 4000 {
			word := rng.Uint32()
			high := byte(word >> 24)
			if seed%3 != 0 {
				high &= 3 // small sizes without alignment, so that more fit
			}
			low := byte(word >> 16)
			if seed%4 == 0 {
				low &= 0xc0 // few sizes, so that they repeat
			}
			m.step(byte(word), byte(word>>8)&63, low, high)
		}
		m.finish()
	}
}
