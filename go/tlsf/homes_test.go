package tlsf

import (
	"math"
	"testing"
)

// The counter of homes has 32 bits, as int has on some processors, and wraps.
func TestHomesAreShardsAfterAnyNumberOfThem(t *testing.T) {
	s, err := NewSharded(make([]byte, 3<<12), 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, given := range []uint32{0, math.MaxInt32 - 1, math.MaxInt32, math.MaxUint32 - 1, math.MaxUint32} {
		s.next.Store(given)
		if home, ok := s.homes.New().(*shard); !ok || home == nil {
			t.Errorf("after %d homes: %v", given, home)
		}
	}
}
