package typed_test

import (
	"fmt"
	"log"

	"github.com/freestone-alloc/freestone/go/tlsf"
	"github.com/freestone-alloc/freestone/go/tlsf/typed"
)

// A Heap, a Locked and a Sharded are Allocators.
func ExampleAllocator() {
	type sample struct{ At, Value float64 }
	record := func(a typed.Allocator) (*sample, error) {
		return typed.New[sample](a)
	}
	heap, err := tlsf.New(make([]byte, 1<<16))
	if err != nil {
		log.Fatal(err)
	}
	one, err := record(heap)
	if err != nil {
		log.Fatal(err)
	}
	one.Value = 3
	fmt.Println(*one, typed.Free(heap, one))
	// Output: {0 3} <nil>
}
