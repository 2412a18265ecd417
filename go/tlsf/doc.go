// Package tlsf is a memory allocator in pure Go: a two-level segregated-fit heap over memory that you provide. It is for
// programs that allocate and free large buffers often, or that cannot wait for the garbage collector.
//
// Alloc and Free together take about 13 nanoseconds, for 1 KiB and for 500 KiB alike; they allocate nothing on Go's heap, and clear
// nothing. The region can lie outside Go's heap (package tlsf/mmap), where the collector neither scans nor counts it.
//
//	region, err := mmap.Map(64<<20, 64<<20)      // or make([]byte, 64<<20)
//	heap, err := tlsf.New(region.Bytes())
//	b, err := heap.Alloc(100_000)
//	...
//	err = heap.Free(b)
//
// # Which type
//
//   - [Heap] is for one goroutine at a time, and the fastest.
//   - [Locked], a Heap behind a mutex, is for a few goroutines, or for many whose buffers live longer than microseconds.
//   - [Sharded], several heaps, is for goroutines on many processors that allocate most of the time. A block lies in one shard, so there
//     is less room for large blocks than in a Locked of the same size.
//   - Package typed for values, slices of values and strings.
//
// # The rules
//
//   - Store no Go pointers in blocks: no pointer, string, slice, map, channel, function or interface. The collector does not look into
//     blocks, and frees objects that only a block points to. Package typed refuses such types. To refer from one block
//     to another, store what Offset returns, and pass it to At.
//   - Free each block once, and drop every slice of it. As in C, using a slice after Free reads or overwrites what
//     the next owner stores there. Free detects a second Free, a foreign slice and a resliced one, and then changes nothing; it
//     cannot detect a stale slice of a block that has been allocated again with the same place and size.
//   - Pass Free the slice as you got it. Its length may differ; its start and its capacity identify the block.
//   - A new block contains what was there before; AllocZeroed clears it.
//   - Appending beyond the capacity moves the data to Go's heap, as always: the block stays allocated. Use Realloc.
//   - After Close no slice may be used; after an mmap region is closed, touching one ends the program.
//   - GOMEMLIMIT and GOGC do not count off-heap memory. Set GOMEMLIMIT to the program's budget less the regions' size.
//   - A region on Go's heap counts as one large object, which the collector does not scan, because it holds bytes.
//
// # When not to use it
//
// For small objects, objects with pointers, or objects with unclear lifetimes, use Go's own allocator: it is fast for those, and
// the collector makes them safe. For buffers of one size that may be dropped under memory pressure, use sync.Pool;
// also where demand rises and falls, or slow clients hold the buffers, because a pool returns idle memory, while a region takes all of
// its memory from the budget. Off-heap buffers make collections rarer only if the region is smaller than what the pool would
// hold. It can be smaller where a buffer is held only while a processor works on it: the cap can then be a few of the largest buffers for
// each processor, and AllocContext makes the rest wait. Use this package when sizes vary, when the total must have a hard cap, when clearing
// and collecting large buffers shows in profiles, or when the worst case matters.
//
// # Memory
//
// Blocks are multiples of 16 bytes with an 8-byte header, at least 32 together, and start at multiples of 16, or of any power of two
// with AllocAligned. A larger free block is split, unless the rest would be shorter than 32 bytes, or the block is a close fit: one
// between 512 bytes and 16 KiB that exceeds the need by at most 480 bytes, and a seventh of it. A close fit is handed out whole. The
// slice's capacity includes the excess, and Realloc cuts it off. For an alignment above 16, and with footers,
// it is split nevertheless.
//
// Beside each region, a bitmap of 1/128 of its size on Go's heap records where used blocks start. Free checks slices against it,
// so no content of a block can pass for a block. GrowRegion extends a region within the capacity of its slice; AddRegion adds another.
//
// # Finding mistakes
//
// Every error wraps one of the Err values, for errors.Is, and names the operation, the block, and what to do next. Check
// verifies all invariants. Leaks lists the blocks in use; WithCallSites records who allocated them; WithFooters detects writes beyond a block
// through unsafe or assembly. Stats, Metrics and the String methods of Locked and Sharded (for expvar) are for monitoring a running program.
//
// # Source
//
// Masmano, Ripoll, Crespo, Real: "TLSF: a new dynamic memory allocator for real-time systems", 2004. The same operations
// give the same offsets as Freestone's Rust crate; the streams in testdata/ops check both.
package tlsf
