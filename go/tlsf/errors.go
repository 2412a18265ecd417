package tlsf

// Errors: one sentinel for each kind of error, and the type that adds the operation and the block.
//
// Internal steps pass sentinels as plain numbers; only the outermost call builds an *Error.

import (
	"fmt"
	"strings"
)

// sentinel is an error for comparison. It is a number, so that the hot paths can pass it in a register.
type sentinel uint8

// Every error of this package, except a *LeakError, is an *Error that wraps one of these: test with errors.Is.
const (
	noError sentinel = iota
	// ErrInvalidSize: a size of 0 or below, or a growth that is not a multiple of 16 of at least 32 bytes.
	ErrInvalidSize
	// ErrTooLarge: more than the largest region, or shard, could ever hold, the newest region with all that GrowRegion can add.
	ErrTooLarge
	// ErrNoMemory: no free block is large enough now; freeing or growing can help.
	ErrNoMemory
	// ErrInvalidAlignment: not a power of two, or above 1 << 46. One that no region could hold is ErrTooLarge.
	ErrInvalidAlignment
	// ErrForeign: the slice does not lie in any region of this heap.
	ErrForeign
	// ErrResliced: the slice lies in a used block but is not the whole of it, as Alloc returned it.
	ErrResliced
	// ErrDoubleFree: the slice lies in memory that is already free.
	ErrDoubleFree
	// ErrOverrun: the footer behind the block was overwritten.
	ErrOverrun
	// ErrCorrupted: a header or a link was overwritten from outside.
	ErrCorrupted
	// ErrClosed: the heap was closed.
	ErrClosed
	// ErrLeak: Close found blocks in use.
	ErrLeak
	// ErrRegionNil: a region that is nil.
	ErrRegionNil
	// ErrRegionTooSmall: a region that does not hold one block.
	ErrRegionTooSmall
	// ErrRegionTooLarge: a region beyond the 47 bits that an offset has, or one region too many.
	ErrRegionTooLarge
	// ErrRegionMisaligned: a region that does not start at a multiple of 16.
	ErrRegionMisaligned
	// ErrRegionOverlap: a region that shares memory with one the heap already has.
	ErrRegionOverlap
	// ErrHoldsPointers: a type that contains Go pointers, which the garbage collector would not see.
	ErrHoldsPointers
	// ErrInvalidOption: an option that is nil or out of range, or a negative number of shards.
	ErrInvalidOption
)

// sentinelText has what happened and what to do next.
var sentinelText = [...]struct{ what, next string }{
	noError:             {"no error", ""},
	ErrInvalidSize:      {"invalid size", "request at least 1 byte; grow by a multiple of 16 of at least 32"},
	ErrTooLarge:         {"larger than the heap could ever hold", "add a larger region, or split the request"},
	ErrNoMemory:         {"out of memory", "free blocks, GrowRegion or AddRegion, or wait with AllocContext"},
	ErrInvalidAlignment: {"invalid alignment", "use a power of two that is smaller than the region"},
	ErrForeign:          {"memory that is not from this heap", "free a slice with the heap that allocated it"},
	ErrResliced:         {"not a whole block", "pass the slice as it was returned; only its length may differ"},
	ErrDoubleFree:       {"memory that is already free", "free a block once, and drop the slice then"},
	ErrOverrun:          {"footer overwritten", "look for writes through unsafe beyond the slice's capacity"},
	ErrCorrupted:        {"block header or free list overwritten", "run Check, and look for writes after Free"},
	ErrClosed:           {"heap is closed", "do not use a heap after Close"},
	ErrLeak:             {"blocks in use", "free them before Close; WithCallSites names who allocated them"},
	ErrRegionNil:        {"region is nil", "pass memory: make([]byte, n) or mmap.Map"},
	ErrRegionTooSmall:   {"region is too small", "pass at least 48 bytes"},
	ErrRegionTooLarge:   {"region is too large, or one too many", "use fewer or smaller regions"},
	ErrRegionMisaligned: {"region does not start at a multiple of 16", "use make([]byte, n) or mmap.Map, not resliced"},
	ErrRegionOverlap:    {"region overlaps one the heap already has", "pass separate memory"},
	ErrHoldsPointers:    {"type holds Go pointers", "store offsets or values; the collector does not look inside"},
	ErrInvalidOption:    {"invalid option", "see the option's documentation"},
}

// Error is the sentinel's text.
func (s sentinel) Error() string { return "tlsf: " + sentinelText[s].what }

// Error is a failed operation, its block, and what to do next.
type Error struct {
	Op     string // the operation: "alloc", "free", ...
	Err    error  // one of the sentinels
	Offset int64  // the block or slice it is about, as an offset in its region; of At, what it was passed; -1 when there is none
	Size   int64  // the requested bytes, or the capacity of the slice; -1 when there is none
	Detail string // more text for the message
}

// Error is one line: what happened, to what, what to do next.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "tlsf: %s", e.Op)
	if e.Size >= 0 {
		fmt.Fprintf(&b, " of %d bytes", e.Size)
	}
	if e.Offset >= 0 {
		fmt.Fprintf(&b, " at offset %#x", e.Offset)
	}
	what, next := e.Err.Error(), ""
	if s, ok := e.Err.(sentinel); ok {
		what, next = sentinelText[s].what, sentinelText[s].next
	}
	fmt.Fprintf(&b, ": %s", what)
	if e.Detail != "" {
		fmt.Fprintf(&b, " (%s)", e.Detail)
	}
	if next != "" {
		fmt.Fprintf(&b, "; %s", next)
	}
	return b.String()
}

// Unwrap makes errors.Is see the sentinel.
func (e *Error) Unwrap() error { return e.Err }
