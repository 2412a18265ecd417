//go:build goexperiment.arenas

package bench

import (
	"arena"
	"testing"
)

// An arena cannot free one block: it is freed and replaced when it has given out as much as the heaps under test hold.
func init() {
	arenaPair = func(b *testing.B, n int) {
		a, given := arena.NewArena(), 0
		b.ReportAllocs()
		for b.Loop() {
			if given += n; given > regionBytes {
				a.Free()
				a, given = arena.NewArena(), n
			}
			sink = arena.MakeSlice[byte](a, n, n)
		}
		sink = nil
		a.Free()
	}
}
