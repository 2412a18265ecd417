package tlsf_test

import (
	"errors"
	"testing"

	"github.com/freestone-alloc/freestone/go/internal/raw"
	"github.com/freestone-alloc/freestone/go/tlsf"
)

// filledShards returns n shards of 4 KiB, with their memory, and the blocks of bytes that fill each of them: fit of them.
func filledShards(t *testing.T, n, fit, bytes int) ([]byte, *tlsf.Sharded, [][][]byte) {
	t.Helper()
	mem := alignedRegion(n<<12, n<<12)
	s, err := tlsf.NewSharded(mem, n)
	if err != nil {
		t.Fatal(err)
	}
	shards := make([][][]byte, n)
	for range n * fit {
		b := mustAlloc(t, s, bytes)
		k := (raw.Address(b) - raw.Address(mem)) >> 12
		shards[k] = append(shards[k], b)
	}
	return mem, s, shards
}

func TestABlockThatOutgrowsItsShardMovesToAnother(t *testing.T) {
	mem, s, shards := filledShards(t, 4, 2, 1800)
	gone := shards[3][1]
	if err := errors.Join(s.Free(shards[3][0]), s.Free(gone)); err != nil {
		t.Fatal(err)
	}
	copy(shards[0][0], "contents")
	b, err := s.Realloc(shards[0][0], 3000)
	if err != nil || string(b[:8]) != "contents" {
		t.Fatalf("%v %q", err, b[:min(8, len(b))])
	}
	if leaks := s.Leaks(); len(leaks) != 6 || leaks[5].Region != 3 || leaks[5].Capacity < 3000 {
		t.Fatal(leaks)
	}
	wantError(t, s.Free(make([]byte, 100)), tlsf.ErrForeign)
	wantError(t, s.Free(b[16:]), tlsf.ErrResliced)
	wantError(t, s.Free(shards[0][0]), tlsf.ErrDoubleFree)
	wantError(t, s.Free(mem[:0]), tlsf.ErrDoubleFree)
	for k := range 4 { // the first word of a shard is its own, although no block can start there
		if err := s.Free(mem[k<<12 : k<<12]); err == nil || errors.Is(err, tlsf.ErrForeign) {
			t.Fatalf("shard %d: %v", k, err)
		}
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
}

func TestEachShardTakesBackItsBlocks(t *testing.T) {
	for _, shards := range []int{1, 2, 3, 5, 7, 13} {
		n := 1<<16 + shards*48
		s, err := tlsf.NewSharded(alignedRegion(n, n), shards)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range fillUp(t, s, 1) {
			if err := s.Free(b); err != nil {
				t.Fatalf("%d shards: %v", shards, err)
			}
		}
		if err := errors.Join(s.Check(), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
