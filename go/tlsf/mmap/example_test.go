package mmap_test

import (
	"fmt"
	"log"

	"github.com/freestone-alloc/freestone/go/tlsf"
	"github.com/freestone-alloc/freestone/go/tlsf/mmap"
)

// A region begins small; the heap grows it within its capacity.
func ExampleRegion() {
	region, err := mmap.Map(1<<20, 4<<20)
	if err != nil {
		log.Fatal(err)
	}
	heap, err := tlsf.New(region.Bytes())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(heap.GrowRegion(3<<20), heap.Stats().RegionBytes>>20)
	fmt.Println(heap.Close(), region.Close())
	// Output:
	// <nil> 4
	// <nil> <nil>
}
