package tlsf_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"expvar"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/freestone-alloc/freestone/go/internal/raw"
	"github.com/freestone-alloc/freestone/go/tlsf"
)

func TestNoOperationAllocatesOnGosHeap(t *testing.T) {
	h := newHeap(t, 1<<20)
	l := tlsf.NewLocked(newHeap(t, 1<<20))
	s, err := tlsf.NewSharded(alignedRegion(1<<20, 1<<20), 2)
	if err != nil {
		t.Fatal(err)
	}
	keep := [][]byte{mustAlloc(t, h, 700), mustAlloc(t, h, 100), mustAlloc(t, h, 700)}
	if err := h.Free(keep[0]); err != nil {
		t.Fatal(err)
	}
	fail := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	var samples [2]tlsf.Sample
	samples[0].Name = "/freestone/tlsf/used:bytes"
	for name, f := range map[string]func(){
		"pair":           func() { b, err := h.Alloc(1000); fail(err); fail(h.Free(b)) },
		"pair, any size": func() { b, err := h.Alloc(1 + rand.IntN(5000)); fail(err); fail(h.Free(b)) },
		"aligned":        func() { b, err := h.AllocAligned(100, 256); fail(err); fail(h.Free(b)) },
		"realloc": func() {
			b, err := h.Alloc(500)
			fail(err)
			for _, n := range []int{600, 90, 3000} {
				b, err = h.Realloc(b, n)
				fail(err)
			}
			fail(h.Free(b))
		},
		"locked":     func() { b, err := l.Alloc(1000); fail(err); fail(l.Free(b)) },
		"statistics": func() { st := h.Stats(); st.Read(samples[:]) },
		"sharded": func() {
			b, err := s.Alloc(1000)
			fail(err)
			fail(s.Free(b))
		},
	} {
		if name == "sharded" && raceEnabled {
			continue // sync.Pool drops items at random under the race detector
		}
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestAllocZeroedClearsTheWholeCapacity(t *testing.T) {
	h := newHeap(t, 4096)
	b := mustAlloc(t, h, 4000)
	for k := range b {
		b[k] = 0xff
	}
	if err := h.Free(b); err != nil {
		t.Fatal(err)
	}
	z, err := h.AllocZeroed(100)
	if err != nil || !bytes.Equal(z[:cap(z)], make([]byte, cap(z))) {
		t.Fatalf("%v %v", z[:cap(z)], err)
	}
}

func TestReallocKeepsContentsWhereverTheBlockGoes(t *testing.T) {
	h := newHeap(t, 1<<16)
	b, err := h.Realloc(nil, 50)
	if err != nil {
		t.Fatal(err)
	}
	start := raw.Address(b)
	for k := range b {
		b[k] = byte(k)
	}
	check := func(n int, same bool) {
		t.Helper()
		for k := range b[:min(50, n)] {
			if b[k] != byte(k) {
				t.Fatalf("byte %d is %d", k, b[k])
			}
		}
		if len(b) != n || (raw.Address(b) == start) != same {
			t.Fatalf("length %d, want %d; same place %v", len(b), n, raw.Address(b) == start)
		}
	}
	for _, n := range []int{500, 5000, 60, 700} { // memory behind is free
		if b, err = h.Realloc(b, n); err != nil {
			t.Fatal(err)
		}
		check(n, true)
	}
	mustAlloc(t, h, 10)
	if b, err = h.Realloc(b, 1000); err != nil {
		t.Fatal(err)
	}
	check(1000, false)
	if err := h.Check(); err != nil {
		t.Fatal(err)
	}
}

func TestAFailedReallocLeavesTheBlock(t *testing.T) {
	h := newHeap(t, 4096)
	b := mustAlloc(t, h, 100)
	mustAlloc(t, h, 100)
	copy(b, "contents")
	unchanged(t, h, func() {
		_, err := h.Realloc(b, 3900)
		wantError(t, err, tlsf.ErrNoMemory)
	})
	if string(b[:8]) != "contents" {
		t.Fatalf("%q", b[:8])
	}
}

func TestSeveralRegionsShareTheListsButNoBlock(t *testing.T) {
	h := newHeap(t, 1<<12)
	regions := [][]byte{alignedRegion(1<<13, 1<<13), alignedRegion(1<<12, 1<<13)}
	for _, mem := range regions {
		if err := h.AddRegion(mem); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.GrowRegion(1 << 12); err != nil { // the newest region has capacity left
		t.Fatal(err)
	}
	if _, err := h.Alloc(1 << 13); !errors.Is(err, tlsf.ErrTooLarge) {
		t.Fatalf("a block across regions: %v", err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	var live [][]byte
	for n := range 20_000 {
		if rng.IntN(2) == 0 {
			if b, err := h.Alloc(1 + rng.IntN(600)); err == nil {
				for k := range b {
					b[k] = byte(len(b))
				}
				live = append(live, b)
			}
		} else if len(live) > 0 {
			k := rng.IntN(len(live))
			b := live[k]
			if b[0] != byte(len(b)) || b[len(b)-1] != byte(len(b)) {
				t.Fatal("contents changed")
			}
			offset, err := h.Offset(b)
			if err != nil {
				t.Fatal(err)
			}
			if same, err := h.At(offset); err != nil || &same[0] != &b[0] || len(same) != cap(b) {
				t.Fatalf("At(%#x): %v", offset, err)
			}
			if err := h.Free(b); err != nil {
				t.Fatal(err)
			}
			live[k] = live[len(live)-1]
			live = live[:len(live)-1]
		}
		if n%500 == 0 {
			if err := h.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, b := range live {
		if err := h.Free(b); err != nil {
			t.Fatal(err)
		}
	}
	s := h.Stats()
	if s.Regions != 3 || s.FreeBlocks != 3 || s.LargestFree != 1<<13-16 || s.RegionBytes != 1<<12+2<<13 {
		t.Fatal(s)
	}
}

func TestOffsetsWithoutABlockAreRefused(t *testing.T) {
	h := newHeap(t, 4096)
	mustAlloc(t, h, 100)
	for _, offset := range []uint64{0, 8, 17, 32, 128, 4096, 1 << 40, 16 | 1<<48, ^uint64(0)} {
		_, err := h.At(offset)
		wantError(t, err, tlsf.ErrForeign)
	}
}

func TestStatisticsAddUp(t *testing.T) {
	h := newHeap(t, 1<<16)
	b := []([]byte){mustAlloc(t, h, 1000), mustAlloc(t, h, 2000), mustAlloc(t, h, 3000)}
	if err := h.Free(b[1]); err != nil {
		t.Fatal(err)
	}
	s := h.Stats()
	if s.UsedBytes+s.FreeBytes+16 != s.RegionBytes || s.UsedBlocks != 2 || s.FreeBlocks != 2 || s.Allocs != 3 || s.Frees != 1 ||
		s.PeakBytes != 1008+2016+3008 || s.OverheadBytes != 2*8+16 || s.Fragmentation <= 0 || s.Fragmentation >= 1 {
		t.Fatal(s)
	}
	var back tlsf.Stats
	if err := json.Unmarshal([]byte(s.String()), &back); err != nil || back != s {
		t.Fatalf("%v: %s", err, s)
	}
	samples := []tlsf.Sample{{Name: "no such metric"}}
	for _, m := range tlsf.Metrics() {
		samples = append(samples, tlsf.Sample{Name: m.Name})
	}
	s.Read(samples)
	for n, sample := range samples {
		if sample.Known != (n > 0) || sample.Known && sample.Value == 0 {
			t.Errorf("%+v", sample)
		}
	}
	var _ expvar.Var = tlsf.NewLocked(h)
	var _ expvar.Var = (*tlsf.Sharded)(nil)
}

func TestThePackageDoesNotImportUnsafe(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, "_test.go") && bytes.Contains(text, []byte(`"unsafe"`)) {
			t.Errorf("%s imports unsafe", file)
		}
	}
}

// A region on the stack would move with it; New must force it to Go's heap, where nothing moves.
func TestALocalArrayMayBeARegion(t *testing.T) {
	var array [4096]byte
	start := int(-raw.Address(array[:]) & 15)
	h, err := tlsf.New(array[start:])
	if err != nil {
		t.Fatal(err)
	}
	b := mustAlloc(t, h, 100)
	growStack(200)
	runtime.GC()
	if err := errors.Join(h.Free(b), h.Check()); err != nil {
		t.Fatal(err)
	}
}

func growStack(n int) int {
	var frame [1024]byte
	if n == 0 {
		return int(frame[0])
	}
	return growStack(n-1) + int(frame[n])
}
