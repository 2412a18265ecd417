package tlsf_test

// The shared operation streams: testdata/ops/NAME.ops and, for each, the offsets that every implementation must give.
// `go test ./tlsf -run Streams -update` writes both anew from fixed seeds.

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/freestone-alloc/freestone/go/internal/ops"
	"github.com/freestone-alloc/freestone/go/internal/raw"
	"github.com/freestone-alloc/freestone/go/tlsf"
)

var update = flag.Bool("update", false, "write testdata/ops anew")

const opsDir = "../../testdata/ops"

// alignedRegion is n bytes with capacity capacity, at a multiple of 4096.
func alignedRegion(n, capacity int) []byte {
	mem := make([]byte, capacity+4096)
	skip := int(-raw.Address(mem) & 4095)
	return mem[skip : skip+n : skip+capacity]
}

// player plays operations against a heap and records the offsets of the blocks.
type player struct {
	t      testing.TB
	heap   *tlsf.Heap
	blocks map[int][]byte
	aligns map[int]int
	out    bytes.Buffer
}

func newPlayer(t testing.TB, regionLen, capacity int) *player {
	heap, err := tlsf.New(alignedRegion(regionLen, capacity))
	if err != nil {
		t.Fatal(err)
	}
	return &player{t: t, heap: heap, blocks: map[int][]byte{}, aligns: map[int]int{}}
}

func (p *player) play(op ops.Op) {
	b, used := p.blocks[op.ID]
	switch op.Kind {
	case ops.Alloc:
		b, err := p.heap.AllocAligned(op.Size, op.Align)
		if err == nil {
			p.blocks[op.ID], p.aligns[op.ID] = b, op.Align
		}
		p.note(b)
	case ops.Realloc:
		if !used {
			p.note(nil)
			return
		}
		b, err := p.heap.ReallocAligned(b, op.Size, p.aligns[op.ID])
		if err == nil {
			p.blocks[op.ID] = b
		}
		p.note(b)
	case ops.Free:
		if used {
			if err := p.heap.Free(b); err != nil {
				p.t.Fatal(err)
			}
			delete(p.blocks, op.ID)
		}
	case ops.Grow:
		if err := p.heap.GrowRegion(op.Size); err != nil {
			p.t.Fatal(err)
		}
	}
}

// note writes one line: the block's offset, or - for none.
func (p *player) note(b []byte) {
	if b == nil {
		p.out.WriteString("-\n")
		return
	}
	offset, err := p.heap.Offset(b)
	if err != nil {
		p.t.Fatal(err)
	}
	fmt.Fprintln(&p.out, offset)
}

// end writes the last line and checks the heap.
func (p *player) end() []byte {
	if err := p.heap.Check(); err != nil {
		p.t.Fatal(err)
	}
	s := p.heap.Stats()
	fmt.Fprintf(&p.out, "end %d %d %d\n", s.UsedBlocks, s.FreeBlocks, s.FreeBytes)
	return p.out.Bytes()
}

// streamKind is how one stream is made. Weights are out of 100; what is left over is free.
type streamKind struct {
	name, comment  string
	seed           uint64
	region, len    int
	ids            int
	alloc, realloc int
	grow           int
	size           func(*rand.Rand, *tlsf.Heap) int
	align          func(*rand.Rand) int
}

func between(low, high int) func(*rand.Rand, *tlsf.Heap) int {
	return func(r *rand.Rand, _ *tlsf.Heap) int { return low + r.IntN(high-low+1) }
}

// spread is sizes of all magnitudes up to 2^log2, including a few that can never fit.
func spread(log2 int) func(*rand.Rand, *tlsf.Heap) int {
	return func(r *rand.Rand, _ *tlsf.Heap) int {
		switch r.IntN(100) {
		case 0:
			return 0
		case 1:
			return 1 << (20 + r.IntN(10))
		}
		return 1 + r.IntN(1<<(3+r.IntN(log2-2)))
	}
}

// aroundLargest is sizes around the largest free block: exactly it, one granule and one byte to each side, half of it.
func aroundLargest(r *rand.Rand, heap *tlsf.Heap) int {
	payload := int(heap.Stats().LargestFree) - 8
	switch r.IntN(8) {
	case 0:
		return max(1, payload)
	case 1:
		return max(1, payload+1)
	case 2:
		return max(1, payload-1)
	case 3:
		return max(1, payload-16)
	case 4:
		return max(1, payload/2)
	}
	return 1 + r.IntN(1500)
}

func anyAlign(r *rand.Rand) int { return 1 << r.IntN(13) }
func noAlign(*rand.Rand) int    { return 16 }

var streamKinds = []streamKind{
	{"random-small", "1 to 256 bytes, up to 300 blocks", 1, 1 << 16, 4000, 300, 55, 0, 0, between(1, 256), noAlign},
	{"random-mixed", "16 to 4096 bytes, up to 200 blocks", 2, 1 << 18, 4000, 200, 55, 0, 0, between(16, 4096), noAlign},
	{"aligned", "alignments from 1 to 4096", 3, 1 << 18, 3500, 100, 52, 8, 0, between(1, 2000), anyAlign},
	{"realloc-heavy", "mostly reallocation, a quarter of it aligned", 4, 1 << 17, 4000, 60, 25, 60, 0, spread(12),
		func(r *rand.Rand) int { return 16 << max(0, r.IntN(12)-8) }},
	{"exhaustion", "more than fits: many allocations fail", 5, 1 << 14, 4000, 150, 65, 10, 0, spread(12),
		func(r *rand.Rand) int { return 16 << max(0, r.IntN(12)-8) }},
	{"grow", "the region is lengthened again and again", 6, 1 << 10, 3500, 200, 50, 8, 5, between(1, 600), noAlign},
	{"exact-largest", "sizes at and around the largest free block", 7, 1 << 16, 3000, 80, 50, 12, 0, aroundLargest, noAlign},
	{"close-fit", "up to 32 KiB: close fits stay whole at every level", 8, 1 << 20, 4000, 250, 55, 0, 0, spread(15), noAlign},
}

// generate makes a stream by playing it: sizes may depend on the heap's state.
func generate(t testing.TB, k streamKind) *ops.Stream {
	rng := rand.New(rand.NewPCG(k.seed, 0x7153f))
	s := &ops.Stream{Comment: k.name + ": " + k.comment, RegionLen: k.region}
	p := newPlayer(t, k.region, 1<<22)
	for len(s.Ops) < k.len {
		op := ops.Op{ID: rng.IntN(k.ids), Kind: ops.Free}
		_, used := p.blocks[op.ID]
		switch roll := rng.IntN(100); {
		case roll < k.grow:
			op = ops.Op{Kind: ops.Grow, Size: 16 * (2 + rng.IntN(40))}
		case roll < k.grow+k.alloc && !used:
			op.Kind, op.Size, op.Align = ops.Alloc, k.size(rng, p.heap), k.align(rng)
		case roll < k.grow+k.alloc+k.realloc && (used || roll%8 == 0):
			op.Kind, op.Size = ops.Realloc, max(1, k.size(rng, p.heap))
		case !used && roll%16 != 0:
			continue
		}
		p.play(op)
		s.Ops = append(s.Ops, op)
	}
	return s
}

func TestSharedStreamsGiveTheSameOffsets(t *testing.T) {
	for _, k := range streamKinds {
		t.Run(k.name, func(t *testing.T) {
			if *update {
				writeStream(t, k)
			}
			file, err := os.Open(filepath.Join(opsDir, k.name+".ops"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			s, err := ops.Read(file)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(filepath.Join(opsDir, k.name+".offsets"))
			if err != nil {
				t.Fatal(err)
			}
			compareLines(t, playStream(t, s), want)
			compareLines(t, playReference(s), want)
		})
	}
}

func playStream(t testing.TB, s *ops.Stream) []byte {
	p := newPlayer(t, s.RegionLen, s.Capacity())
	for _, op := range s.Ops {
		p.play(op)
	}
	return p.end()
}

// playReference is playStream with the reference instead of the heap.
func playReference(s *ops.Stream) []byte {
	var out bytes.Buffer
	note := func(offset int) {
		if offset < 0 {
			out.WriteString("-\n")
			return
		}
		fmt.Fprintln(&out, offset)
	}
	m, blocks, aligns := newReference(s.RegionLen, 0), map[int]int{}, map[int]int{}
	for _, op := range s.Ops {
		at, used := blocks[op.ID]
		switch {
		case op.Kind == ops.Alloc:
			at := m.alloc(op.Size, op.Align)
			if at >= 0 {
				blocks[op.ID], aligns[op.ID] = at, op.Align
			}
			note(at)
		case op.Kind == ops.Realloc && !used:
			note(-1)
		case op.Kind == ops.Realloc:
			at := m.realloc(at, op.Size, aligns[op.ID])
			if at >= 0 {
				blocks[op.ID] = at
			}
			note(at)
		case op.Kind == ops.Free && used:
			m.free(at)
			delete(blocks, op.ID)
		case op.Kind == ops.Grow:
			m.grow(op.Size)
		}
	}
	used, free, freeBytes := m.totals()
	fmt.Fprintf(&out, "end %d %d %d\n", used, free, freeBytes)
	return out.Bytes()
}

func writeStream(t *testing.T, k streamKind) {
	s := generate(t, k)
	var text bytes.Buffer
	if err := s.Write(&text); err != nil {
		t.Fatal(err)
	}
	for suffix, data := range map[string][]byte{".ops": text.Bytes(), ".offsets": playStream(t, s)} {
		if err := os.WriteFile(filepath.Join(opsDir, k.name+suffix), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func compareLines(t *testing.T, got, want []byte) {
	t.Helper()
	a, b := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	if len(a) != len(b) {
		t.Fatalf("%d lines of offsets, want %d", len(a), len(b))
	}
	for n := range a {
		if !bytes.Equal(a[n], b[n]) {
			t.Fatalf("line %d: offset %s, want %s", n+1, a[n], b[n])
		}
	}
}
