package tlsf_test

// Memory that was written from outside: a write beyond a block, or into one after it was freed. The operation that finds the damage
// reports it and changes nothing; none panics.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/freestone-alloc/freestone/go/tlsf"
)

func word(mem []byte, off int) uint64       { return binary.NativeEndian.Uint64(mem[off:]) }
func setWord(mem []byte, off int, x uint64) { binary.NativeEndian.PutUint64(mem[off:], x) }

// damageable is a heap with its memory: a at 16, b at 128, c at 240, of 112 bytes each with their headers; then free.
func damageable(t *testing.T, options ...tlsf.Option) (h *tlsf.Heap, mem []byte, blocks [3][]byte) {
	mem = alignedRegion(4096, 4096)
	h, err := tlsf.New(mem, options...)
	if err != nil {
		t.Fatal(err)
	}
	for n := range blocks {
		blocks[n] = mustAlloc(t, h, 96)
	}
	return h, mem, blocks
}

func TestADamagedHeaderIsFoundBeforeAnythingChanges(t *testing.T) {
	for _, value := range []uint64{0, 16, 48, 1 << 20, ^uint64(0), 112 | 1, 112 | 4, 1 << 63} {
		h, mem, blocks := damageable(t)
		setWord(mem, 120, value)
		before := bytes.Clone(mem)
		wantError(t, h.Check(), tlsf.ErrCorrupted)
		if err := h.Free(blocks[1]); err == nil {
			t.Errorf("header %#x: free succeeded", value)
		}
		if !bytes.Equal(mem, before) {
			t.Errorf("header %#x: a refused free wrote to memory", value)
		}
	}
}

func TestAtRefusesABlockWhoseHeaderIsDamaged(t *testing.T) {
	for _, value := range []uint64{0, 16, 1 << 20, ^uint64(0), 112 | 1, 112 | 4, 1 << 63} {
		h, mem, blocks := damageable(t)
		offset, err := h.Offset(blocks[1])
		if err != nil {
			t.Fatal(err)
		}
		setWord(mem, 120, value)
		_, err = h.At(offset)
		wantError(t, err, tlsf.ErrCorrupted)
	}
}

func TestAWriteAfterFreeIsFoundBeforeAnythingChanges(t *testing.T) {
	for _, off := range []int{128, 136, 120, 224} {
		for _, value := range []uint64{1, 31, 1 << 50, ^uint64(0), 64} {
			h, mem, blocks := damageable(t)
			if err := h.Free(blocks[1]); err != nil {
				t.Fatal(err)
			}
			if word(mem, off) == value {
				continue
			}
			setWord(mem, off, value)
			before := bytes.Clone(mem)
			wantError(t, h.Check(), tlsf.ErrCorrupted)
			err := h.Free(blocks[0])
			wantError(t, err, tlsf.ErrCorrupted)
			wantError(t, h.Free(blocks[2]), tlsf.ErrCorrupted)
			_, err = h.Realloc(blocks[0], 150)
			wantError(t, err, tlsf.ErrCorrupted)
			if !bytes.Equal(mem, before) {
				t.Errorf("word %d = %#x: refused calls wrote to memory", off, value)
			}
		}
	}
}

// Whatever is written anywhere, no call panics or runs for ever.
func TestRandomDamageNeverPanics(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 9))
		h, mem, blocks := damageable(t)
		live := append([][]byte{}, blocks[:]...)
		if seed%2 == 0 {
			if err := h.Free(blocks[1]); err != nil {
				t.Fatal(err)
			}
		}
		for range 1 + rng.IntN(4) {
			setWord(mem, rng.IntN(60)*8, rng.Uint64()>>rng.IntN(64))
		}
		for range 20 {
			if rng.IntN(2) == 0 && len(live) > 0 {
				_ = h.Free(live[rng.IntN(len(live))])
			} else if b, err := h.AllocAligned(1+rng.IntN(600), 16<<rng.IntN(4)); err == nil {
				live = append(live, b)
			}
			if len(live) > 0 {
				_, _ = h.Realloc(live[rng.IntN(len(live))], 1+rng.IntN(400))
			}
		}
		_, _, _, _ = h.Check(), h.Leaks(), h.Stats(), h.GrowRegion(32)
	}
}

func TestAnOverwrittenFooterIsReportedWithItsBlock(t *testing.T) {
	h, mem, blocks := damageable(t, tlsf.WithFooters(), tlsf.WithCallSites(4))
	if err := h.Check(); err != nil {
		t.Fatal(err)
	}
	for k := range blocks[1][:cap(blocks[1])] {
		blocks[1][:cap(blocks[1])][k] = 0xaa
	}
	if err := h.Check(); err != nil {
		t.Fatalf("writing within the capacity: %v", err)
	}
	start, err := h.Offset(blocks[1])
	if err != nil {
		t.Fatal(err)
	}
	mem[int(start)+cap(blocks[1])] ^= 1
	var named *tlsf.Error
	if err := h.Free(blocks[1]); !errors.Is(err, tlsf.ErrOverrun) || !errors.As(err, &named) || named.Offset != int64(start) ||
		named.Detail == "" {
		t.Fatalf("free: %v", err)
	}
	wantError(t, h.Check(), tlsf.ErrOverrun)
	_, err = h.Realloc(blocks[1], 10)
	wantError(t, err, tlsf.ErrOverrun)
	mem[int(start)+cap(blocks[1])] ^= 1
	for _, b := range blocks {
		if err := h.Free(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(h.Check(), h.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestASearchOfAListThatIsARingEnds(t *testing.T) {
	mem := alignedRegion(1<<15, 1<<15)
	h, err := tlsf.New(mem)
	if err != nil {
		t.Fatal(err)
	}
	// Free blocks of 4096 and 4112 bytes share a list; no other is as large.
	var free [][]byte
	for n := range 3 {
		free = append(free, mustAlloc(t, h, 4096-8+16*(n&1)))
		mustAlloc(t, h, 8)
	}
	if _, err := h.Alloc(int(h.Stats().LargestFree) - 8); err != nil {
		t.Fatal(err)
	}
	var last int
	for _, b := range free {
		offset, err := h.Offset(b)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Free(b); err != nil {
			t.Fatal(err)
		}
		if last == 0 {
			last = int(offset)
		}
	}
	setWord(mem, last, uint64(last-8)/8) // the list's last block names itself as the next
	_, err = h.Alloc(4096 - 8 + 64)
	wantError(t, err, tlsf.ErrCorrupted)
	wantError(t, h.Check(), tlsf.ErrCorrupted)
	if h.Stats().LargestFree != 4112 {
		t.Fatal(h.Stats())
	}
}

func TestABlockThatCannotBeFreedStaysWhenItOutgrowsItsShard(t *testing.T) {
	_, s, shards := filledShards(t, 2, 3, 1200)
	if err := errors.Join(s.Free(shards[0][0]), s.Free(shards[1][0]), s.Free(shards[1][1])); err != nil {
		t.Fatal(err)
	}
	b := shards[0][1]
	copy(b, "contents")
	for k := range shards[0][0] { // its links and its size, which lie in front of b
		shards[0][0][k] = 0xff
	}
	before := len(s.Leaks())
	for range 2 {
		moved, err := s.Realloc(b, 2000)
		wantError(t, err, tlsf.ErrCorrupted)
		if moved != nil || string(b[:8]) != "contents" || len(s.Leaks()) != before {
			t.Fatalf("a block of %d bytes, %q, %d blocks in use, %d before", len(moved), b[:8], len(s.Leaks()), before)
		}
	}
}
