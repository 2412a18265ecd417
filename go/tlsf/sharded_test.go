package tlsf_test

import (
	"errors"
	"testing"

	"github.com/freestone-alloc/freestone/go/internal/raw"
	"github.com/freestone-alloc/freestone/go/tlsf"
)

func TestABlockThatOutgrowsItsShardMovesToAnother(t *testing.T) {
	mem := alignedRegion(1<<14, 1<<14)
	s, err := tlsf.NewSharded(mem, 4)
	if err != nil {
		t.Fatal(err)
	}
	var shards [4][][]byte // two blocks fit into each
	for range 8 {
		b := mustAlloc(t, s, 1800)
		k := (raw.Address(b) - raw.Address(mem)) >> 12
		shards[k] = append(shards[k], b)
	}
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
