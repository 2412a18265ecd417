package tlsf_test

import (
	"context"
	"errors"
	"expvar"
	"fmt"
	"log"
	"sync"
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

func ExampleHeap() {
	heap, err := tlsf.New(make([]byte, 1<<16))
	if err != nil {
		log.Fatal(err)
	}
	b, err := heap.Alloc(1000)
	if err != nil {
		log.Fatal(err)
	}
	b, err = heap.Realloc(b, 2000)
	fmt.Println(len(b), err, heap.Check())
	fmt.Println(heap.Free(b), heap.Close())
	// Output:
	// 2000 <nil> <nil>
	// <nil> <nil>
}

// Goroutines share one heap, behind a lock.
func ExampleLocked() {
	heap, err := tlsf.New(make([]byte, 1<<16))
	if err != nil {
		log.Fatal(err)
	}
	buffers := tlsf.NewLocked(heap)
	var all sync.WaitGroup
	for range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			b, err := buffers.Alloc(5000)
			if err == nil {
				err = buffers.Free(b)
			}
			if err != nil {
				log.Print(err)
			}
		}()
	}
	all.Wait()
	fmt.Println(buffers.Close())
	// Output: <nil>
}

// Goroutines on several processors seldom wait for each other: each has a home shard.
func ExampleSharded() {
	buffers, err := tlsf.NewSharded(make([]byte, 1<<20), 4)
	if err != nil {
		log.Fatal(err)
	}
	b, err := buffers.Alloc(5000)
	fmt.Println(len(b), err, buffers.Free(b))
	_, err = buffers.Alloc(1 << 19)
	fmt.Println("more than a shard:", errors.Is(err, tlsf.ErrTooLarge))
	fmt.Println(buffers.Close())
	// Output:
	// 5000 <nil> <nil>
	// more than a shard: true
	// <nil>
}

// Blocks lists used and free blocks in the order of their addresses.
func ExampleBlock() {
	heap, err := tlsf.New(make([]byte, 1<<16))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := heap.Alloc(1000); err != nil {
		log.Fatal(err)
	}
	for block := range heap.Blocks() {
		fmt.Printf("%+v\n", block)
	}
	// Output:
	// {Region:0 Offset:16 Size:1008 Used:true}
	// {Region:0 Offset:1024 Size:64512 Used:false}
}

// An Error is one of the package's errors, with the block and with what to do next.
func ExampleError() {
	heap, err := tlsf.New(make([]byte, 1<<16))
	if err != nil {
		log.Fatal(err)
	}
	_, err = heap.Alloc(-1)
	var failed *tlsf.Error
	fmt.Println(errors.As(err, &failed), errors.Is(err, tlsf.ErrInvalidSize))
	fmt.Println(err)
	// Output:
	// true true
	// tlsf: alloc: invalid size; request at least 1 byte; grow by a multiple of 16 of at least 32
}

// Close returns the blocks that are still in use.
func ExampleLeakError() {
	heap, err := tlsf.New(make([]byte, 1<<16))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := heap.Alloc(1000); err != nil {
		log.Fatal(err)
	}
	var leaked *tlsf.LeakError
	if errors.As(heap.Close(), &leaked) {
		fmt.Println(len(leaked.Leaks), errors.Is(leaked, tlsf.ErrLeak))
	}
	// Output: 1 true
}

func ExampleLeak() {
	heap, err := tlsf.New(make([]byte, 1<<16))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := heap.Alloc(1000); err != nil {
		log.Fatal(err)
	}
	for _, leak := range heap.Leaks() {
		fmt.Println(leak)
	}
	// Output:
	// 1000 bytes at offset 0x10 of region 0
}

func ExampleMetric() {
	for _, metric := range tlsf.Metrics()[:2] {
		fmt.Println(metric.Name)
	}
	// Output:
	// /freestone/tlsf/regions:bytes
	// /freestone/tlsf/used:blocks
}

// A heap with footers finds that a block was written past its end.
func ExampleOption() {
	heap, err := tlsf.New(make([]byte, 1<<16), tlsf.WithFooters())
	if err != nil {
		log.Fatal(err)
	}
	b, err := heap.Alloc(100)
	fmt.Println(len(b), err, heap.Free(b))
	// Output: 100 <nil> <nil>
}

// A sample whose name is no metric's is not known.
func ExampleSample() {
	samples := []tlsf.Sample{{Name: "/freestone/tlsf/used:bytes"}, {Name: "/no/such:metric"}}
	tlsf.Stats{}.Read(samples)
	fmt.Println(samples[0].Known, samples[1].Known)
	// Output: true false
}

// Statistics of several heaps add up.
func ExampleStats() {
	var sum tlsf.Stats
	for range 2 {
		heap, err := tlsf.New(make([]byte, 1<<16))
		if err != nil {
			log.Fatal(err)
		}
		sum = sum.Add(heap.Stats())
	}
	fmt.Println(sum.Regions, sum.RegionBytes)
	// Output: 2 131072
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
