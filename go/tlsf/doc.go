// Package tlsf is a memory allocator in pure Go: a two-level segregated-fit heap over memory that you hand it, for
// buffers that come and go by the hundred kilobytes, or that must not wait for the garbage collector.
//
// A pair of Alloc and Free takes the same dozen or so nanoseconds for 1 KiB and for 500 KiB, allocates nothing on Go's heap, and clears
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
//   - [Heap] for one goroutine at a time; the fastest.
//   - [Locked], a Heap behind a mutex, for a few goroutines, or for many whose buffers live longer than microseconds.
//   - [Sharded], several heaps, for goroutines on many processors that do little else. A block lies in one shard: large blocks
//     find less room than in a Locked of the same size.
//   - Package typed for values, slices of values and strings.
//
// # The rules
//
//   - No Go pointers inside. The collector does not look into the blocks, so what only a block points to is collected under it.
//     That is every pointer, string, slice, map, channel, function and interface. Package typed refuses such types. To refer from block
//     to block, store what Offset returns, and find it again with At.
//   - Free what you allocate, once, and drop every slice of it. As in C, a slice that is used after Free sees, or destroys, what
//     somebody else keeps there. Free catches a second Free, a foreign slice and a resliced one, and changes nothing then; it
//     cannot catch a stale slice of a block whose place and size have been given to somebody else meanwhile.
//   - Pass Free the slice as you got it. Its length may differ; its start and its capacity are how the heap knows the block.
//   - The contents of a fresh block are what was there before; AllocZeroed clears.
//   - Appending beyond the capacity moves the data to Go's heap, as always: the block stays allocated. Use Realloc.
//   - After Close, and after closing an mmap region even more so, no slice may be touched.
//   - GOMEMLIMIT and GOGC do not see off-heap memory. Set GOMEMLIMIT to the program's budget less the regions' size.
//   - On Go's heap, a region counts as one large object; the collector does not scan it, for it holds bytes.
//
// # When not to use it
//
// For small objects, objects with pointers, or anything whose lifetime is not plain: Go's own allocator is good at those and
// the collector is what makes them safe. For buffers of one size that may be dropped under memory pressure, sync.Pool does;
// also where demand rises and falls, or slow clients hold the buffers, for a pool gives back what is idle, and a region is taken
// from the budget whole. Off the heap, buffers make collections rarer only if the region is smaller than what the pool would come
// to hold. It can be where a buffer is held only while a processor works on it: the cap may then be a few of the largest for each
// processor, and AllocContext makes the rest wait. Come here when sizes vary, when the total must have a hard cap, when clearing
// and collecting large buffers shows up in profiles, or when the worst case counts.
//
// # Memory
//
// Blocks are multiples of 16 bytes with an 8-byte header, at least 32 together, and start at multiples of 16, or of any power of two
// with AllocAligned. A larger free block is split, unless the rest would be shorter than 32 bytes, or the block lies in one of the
// few lists next to the request's, between 512 bytes and 16 KiB: then it is given whole, with at most 480 bytes, and a seventh of
// what is needed, too much. The slice's capacity has them, and Realloc cuts them off. For an alignment above 16, and with footers,
// it is split nevertheless.
//
// Beside the region, a bitmap of 1/128 of its size on Go's heap tells where blocks start: this is what Free checks slices against,
// so that no content of a block can pass for one. Grow lengthens a region within the capacity of its slice; AddRegion adds another.
//
// # Finding mistakes
//
// Every error wraps one of the Err values, for errors.Is, and says what happened, to which block, and what to do. Check
// proves all invariants. Leaks lists what is in use; WithCallSites says who allocated it; WithFooters finds writes beyond a block
// through unsafe or assembly. Stats, Metrics and the String methods of Locked and Sharded (for expvar) are for watching a live program.
//
// # Source
//
// Masmano, Ripoll, Crespo, Real: "TLSF: a new dynamic memory allocator for real-time systems", 2004. The same operations
// give the same offsets as Freestone's Rust crate; testdata/ops holds both to it.
package tlsf
