package tlsf_test

import (
	"context"
	"errors"
	"expvar"
	"fmt"
	"log"
	"time"

	"github.com/freestone-alloc/freestone/go/tlsf"
	"github.com/freestone-alloc/freestone/go/tlsf/mmap"
	"github.com/freestone-alloc/freestone/go/tlsf/typed"
)

func Example() {
	region, err := mmap.Map(1<<20, 1<<20)
	if err != nil {
		log.Fatal(err)
	}
	heap, err := tlsf.New(region.Bytes())
	if err != nil {
		log.Fatal(err)
	}
	b, err := heap.Alloc(100_000)
	if err != nil {
		log.Fatal(err)
	}
	copy(b, "hello")
	fmt.Println(string(b[:5]), len(b))

	fmt.Println(heap.Free(b))
	fmt.Println(heap.Free(b))
	if err := errors.Join(heap.Close(), region.Close()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// hello 100000
	// <nil>
	// tlsf: free of 100008 bytes at offset 0x10: memory that is already free; free a block once, and drop the slice then
}

// At the cap, AllocContext waits until another goroutine frees a block.
func ExampleLocked_AllocContext() {
	heap, err := tlsf.New(make([]byte, 1<<16))
	if err != nil {
		log.Fatal(err)
	}
	buffers := tlsf.NewLocked(heap)
	all, err := buffers.Alloc(60_000)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err = buffers.AllocContext(ctx, 20_000)
	fmt.Println(errors.Is(err, tlsf.ErrNoMemory), errors.Is(err, context.DeadlineExceeded))

	go func() { log.Print(buffers.Free(all)) }()
	b, err := buffers.AllocContext(context.Background(), 20_000)
	fmt.Println(len(b), err)
	// Output:
	// true true
	// 20000 <nil>
}

func ExampleHeap_Leaks() {
	heap, err := tlsf.New(make([]byte, 1<<16), tlsf.WithCallSites(4))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := heap.Alloc(100); err != nil {
		log.Fatal(err)
	}
	for _, leak := range heap.Leaks() {
		fmt.Println(leak.Asked, "bytes at", leak.Offset)
	}
	fmt.Println(errors.Is(heap.Close(), tlsf.ErrLeak))
	// Output:
	// 100 bytes at 16
	// true
}

// Offsets replace pointers between blocks.
func ExampleHeap_Offset() {
	heap, err := tlsf.New(make([]byte, 1<<16))
	if err != nil {
		log.Fatal(err)
	}
	b, err := heap.Alloc(10)
	if err != nil {
		log.Fatal(err)
	}
	name, err := heap.Offset(b)
	if err != nil {
		log.Fatal(err)
	}
	same, err := heap.At(name)
	fmt.Println(name, &same[0] == &b[0], err)
	// Output:
	// 16 true <nil>
}

// A Locked or Sharded is an expvar.Var.
func ExampleLocked_String() {
	heap, err := tlsf.New(make([]byte, 1<<16))
	if err != nil {
		log.Fatal(err)
	}
	expvar.Publish("buffers", tlsf.NewLocked(heap))
	fmt.Println(expvar.Get("buffers"))
	// Output:
	// {"regions":1,"region_bytes":65536,"used_blocks":0,"used_bytes":0,"peak_bytes":0,"free_blocks":1,"free_bytes":65520,"largest_free":65520,"overhead_bytes":16,"fragmentation":0,"allocs":0,"frees":0}
}

func ExampleStats_Read() {
	heap, err := tlsf.New(make([]byte, 1<<16))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := heap.Alloc(1000); err != nil {
		log.Fatal(err)
	}
	samples := []tlsf.Sample{{Name: "/freestone/tlsf/used:bytes"}}
	heap.Stats().Read(samples)
	fmt.Println(samples[0].Value)
	// Output:
	// 1008
}

func Example_typed() {
	heap, err := tlsf.New(make([]byte, 1<<16))
	if err != nil {
		log.Fatal(err)
	}
	type point struct{ X, Y float64 }
	points, err := typed.MakeSlice[point](heap, 0, 100)
	if err != nil {
		log.Fatal(err)
	}
	points = append(points, point{1, 2})
	_, err = typed.New[struct{ Name string }](heap)
	fmt.Println(points, errors.Is(err, tlsf.ErrHoldsPointers))
	fmt.Println(typed.FreeSlice(heap, points))
	// Output:
	// [{1 2}] true
	// <nil>
}
