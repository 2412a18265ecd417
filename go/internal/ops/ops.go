// Package ops reads and writes operation streams: the text files under testdata/ops that every implementation of the heap
// plays; all must place every block at the same offset.
//
//	# comment
//	region LEN         the first line: bytes of the region
//	a ID SIZE ALIGN    allocate, keep under ID
//	r ID SIZE          reallocate, at the alignment of the allocation
//	f ID               free
//	g BYTES            lengthen the region
//
// An ID is unused until an allocation succeeds and after a free; r and f of an unused ID are skipped.
package ops

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Kind is an operation's letter.
type Kind byte

// The operations.
const (
	Alloc   Kind = 'a'
	Realloc Kind = 'r'
	Free    Kind = 'f'
	Grow    Kind = 'g'
)

// Op is one line.
type Op struct {
	Kind  Kind
	ID    int
	Size  int // of a, r and g
	Align int // of a
}

// Stream is one file.
type Stream struct {
	Comment   string
	RegionLen int
	Ops       []Op
}

// Capacity is the most bytes that the region can grow to.
func (s *Stream) Capacity() int {
	total := s.RegionLen
	for _, op := range s.Ops {
		if op.Kind == Grow {
			total += op.Size
		}
	}
	return total
}

// Write writes the stream in the form that Read reads.
func (s *Stream) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	for line := range strings.Lines(s.Comment) {
		fmt.Fprintf(out, "# %s\n", strings.TrimRight(line, "\n"))
	}
	fmt.Fprintf(out, "region %d\n", s.RegionLen)
	for _, op := range s.Ops {
		switch op.Kind {
		case Alloc:
			fmt.Fprintf(out, "a %d %d %d\n", op.ID, op.Size, op.Align)
		case Realloc:
			fmt.Fprintf(out, "r %d %d\n", op.ID, op.Size)
		case Free:
			fmt.Fprintf(out, "f %d\n", op.ID)
		case Grow:
			fmt.Fprintf(out, "g %d\n", op.Size)
		}
	}
	return out.Flush()
}

// Read parses a stream. An error names the line.
func Read(r io.Reader) (*Stream, error) {
	s := &Stream{}
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		if err := s.addLine(lines.Text()); err != nil {
			return nil, fmt.Errorf("ops: line %d: %q: %w", number, lines.Text(), err)
		}
	}
	if s.RegionLen == 0 {
		return nil, fmt.Errorf("ops: no region line; put one first")
	}
	return s, lines.Err()
}

func (s *Stream) addLine(line string) error {
	var op Op
	var err error
	switch word, rest, _ := strings.Cut(line, " "); word {
	case "", "#":
		return nil
	case "region":
		_, err = fmt.Sscanf(rest, "%d", &s.RegionLen)
		return err
	case "a":
		_, err = fmt.Sscanf(rest, "%d %d %d", &op.ID, &op.Size, &op.Align)
		op.Kind = Alloc
	case "r":
		_, err = fmt.Sscanf(rest, "%d %d", &op.ID, &op.Size)
		op.Kind = Realloc
	case "f":
		_, err = fmt.Sscanf(rest, "%d", &op.ID)
		op.Kind = Free
	case "g":
		_, err = fmt.Sscanf(rest, "%d", &op.Size)
		op.Kind = Grow
	default:
		return fmt.Errorf("unknown operation %q; use a, r, f or g", word)
	}
	s.Ops = append(s.Ops, op)
	return err
}
