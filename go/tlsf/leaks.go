package tlsf

// Leaks: the blocks in use, and, on request, the code that allocated them.

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/freestone-alloc/freestone/go/internal/raw"
)

// Leak is one block in use.
type Leak struct {
	Region   int       // the region's number
	Offset   uint64    // where its payload starts in the region
	Capacity uint64    // how many bytes of it the caller may use
	Asked    int       // the requested bytes; 0 without WithCallSites
	Stack    []uintptr // the allocating call and its callers, for runtime.CallersFrames; nil without WithCallSites
}

// String is one line, with the allocating function when it is known.
func (l Leak) String() string {
	text := fmt.Sprintf("%d bytes at offset %#x of region %d", l.Capacity, l.Offset, l.Region)
	if site := siteText(l.Stack); site != "" {
		text += ", allocated by " + site
	}
	return text
}

// LeakError is what Close returns when blocks are in use. errors.Is(err, ErrLeak) holds.
type LeakError struct{ Leaks []Leak }

// maxListed is how many leaks a message names.
const maxListed = 10

// Error lists the first few.
func (e *LeakError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "tlsf: close: %d %s; %s", len(e.Leaks), sentinelText[ErrLeak].what, sentinelText[ErrLeak].next)
	for n, leak := range e.Leaks {
		if n == maxListed {
			fmt.Fprintf(&b, "\n\t... and %d more", len(e.Leaks)-n)
			break
		}
		fmt.Fprintf(&b, "\n\t%v", leak)
	}
	return b.String()
}

// Unwrap makes errors.Is see ErrLeak.
func (e *LeakError) Unwrap() error { return ErrLeak }

// Leaks are the blocks in use, in address order. It reads the map of starts, so it works on a heap with damaged headers too.
func (h *Heap) Leaks() []Leak {
	var leaks []Leak
	for n := 0; n <= len(h.more) && !h.isClosed; n++ {
		r := h.region(uint64(n))
		for off, ok := r.nextStart(0); ok; off, ok = r.nextStart(off + granule) {
			i := off/wordBytes - 1
			leak := Leak{Region: n, Offset: off, Capacity: h.usable(r, i)}
			if h.callSites != nil {
				leak.Asked, leak.Stack = h.callSites.find(r.tag | i)
			}
			leaks = append(leaks, leak)
		}
	}
	return leaks
}

// WithCallSites records the calls that lead to each block, up to depth frames (1 to 64), for Leaks and for errors.
// It costs a map entry and a stack walk per block, on Go's heap: for tests and for finding leaks.
func WithCallSites(depth int) Option {
	return func(h *Heap) sentinel {
		if depth < 1 || depth > 64 {
			return ErrInvalidOption
		}
		h.callSites, h.rare = &callSites{depth: depth, blocks: map[uint64]callSite{}}, true
		return noError
	}
}

type callSites struct {
	depth  int
	blocks map[uint64]callSite // by link
}

type callSite struct {
	asked int
	stack []uintptr
}

// note records the current stack without this package's frames.
func (c *callSites) note(link uint64, n int) {
	stack := make([]uintptr, c.depth+ownFrames)
	stack = stack[:runtime.Callers(2, stack)]
	for len(stack) > 1 && isOwn(stack[0]) {
		stack = stack[1:]
	}
	c.blocks[link] = callSite{asked: n, stack: stack[:min(len(stack), c.depth)]}
}

func (c *callSites) forget(link uint64) { delete(c.blocks, link) }

func (c *callSites) find(link uint64) (int, []uintptr) {
	site := c.blocks[link]
	return site.asked, site.stack
}

// ownFrames is the most frames that this package and its wrappers put between the caller and note.
const ownFrames = 8

// isOwn reports whether the call at pc was made by this package's code, its tests not counted.
func isOwn(pc uintptr) bool {
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	return strings.HasPrefix(frame.Function, ownPrefix) && !strings.HasSuffix(frame.File, "_test.go")
}

const ownPrefix = "github.com/freestone-alloc/freestone/go/tlsf"

// siteText is the innermost call of a stack as text.
func siteText(stack []uintptr) string {
	if len(stack) == 0 {
		return ""
	}
	frame, _ := runtime.CallersFrames(stack).Next()
	return fmt.Sprintf("%s (%s:%d)", frame.Function, frame.File, frame.Line)
}

// siteOf is where the block that starts at b was allocated, as text, if that is known.
func (h *Heap) siteOf(b []byte) string {
	if h.callSites == nil {
		return ""
	}
	r, off := h.locate(raw.Address(b))
	if r == nil || !r.isStart(off) {
		return ""
	}
	_, stack := h.callSites.find(r.tag | (off/wordBytes - 1))
	if site := siteText(stack); site != "" {
		return "allocated by " + site
	}
	return ""
}
