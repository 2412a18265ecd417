package tlsf

import (
	"math/bits"
	"math/rand/v2"
	"testing"
)

// plainListOf is the rule of the documentation, step by step.
func plainListOf(size uint64) uint64 {
	if size < 512 {
		return size / 16
	}
	e := uint64(bits.Len64(size)) - 1
	return (e-8)*32 + size>>(e-5)&31
}

func plainSearchFrom(size uint64) uint64 {
	if size >= 512 {
		size += 1<<(bits.Len64(size)-1-5) - 1
	}
	return plainListOf(size)
}

// eachSize is every size to 2 MiB, and random ones to the largest there are.
func eachSize(check func(size uint64)) {
	for size := uint64(minBlock); size <= 2<<20; size += granule {
		check(size)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		check(max(minBlock, rng.Uint64()>>(17+rng.IntN(40))&^(granule-1)))
	}
}

func TestEverySizeMapsToTheListOfTheRule(t *testing.T) {
	eachSize(func(size uint64) {
		if got, want := listOf(size), plainListOf(size); got != want {
			t.Fatalf("listOf(%d) = %d, want %d", size, got, want)
		}
		if got, want := searchFrom(size), plainSearchFrom(size); got != want {
			t.Fatalf("searchFrom(%d) = %d, want %d", size, got, want)
		}
	})
}

func TestEveryBlockOfASearchedListIsLargeEnough(t *testing.T) {
	eachSize(func(size uint64) {
		if size > granule && listOf(size-granule) >= searchFrom(size) {
			t.Fatalf("list %d holds blocks of %d bytes, which is less than %d", searchFrom(size), size-granule, size)
		}
	})
}

func TestBlocksOfCloseFitListsHaveLittleExcess(t *testing.T) {
	most := uint64(0)
	for need := uint64(minBlock); need <= 1<<16; need += granule {
		for over := uint64(0); over <= 1024; over += granule {
			if !isCloseFit(need, listOf(need+over)) {
				continue
			}
			if most = max(most, over); over > need/7 || need < 512 || need+over >= 16<<10 {
				t.Fatalf("a block of %d bytes stays whole for %d", need+over, need)
			}
		}
	}
	if most != 480 {
		t.Fatalf("at most %d bytes too much", most)
	}
}
