// Package typed allocates values, slices and strings in a heap of package tlsf: New and MakeSlice for types without Go
// pointers, CloneString for text.
//
// The memory belongs to the heap: a value must not be used after it was freed, and the garbage collector does not look inside it.
// So types that contain Go pointers, in any field, are refused with tlsf.ErrHoldsPointers. Where values must refer to each
// other, store the offsets of tlsf's Offset and At.
//
// All functions take any of *tlsf.Heap, *tlsf.Locked and *tlsf.Sharded.
package typed

import (
	"math"
	"reflect"
	"sync"

	"github.com/freestone-alloc/freestone/go/internal/raw"
	"github.com/freestone-alloc/freestone/go/tlsf"
)

// Allocator is the part of a heap that the functions use.
type Allocator interface {
	Alloc(n int) ([]byte, error)
	FreeSized(start *byte, n int) error
}

var (
	_ Allocator = (*tlsf.Heap)(nil)
	_ Allocator = (*tlsf.Locked)(nil)
	_ Allocator = (*tlsf.Sharded)(nil)
)

// New allocates a zero T. Free frees it.
//
// # Errors
//
// tlsf.ErrHoldsPointers; tlsf.ErrInvalidSize for a T of no size; those of Alloc.
func New[T any](a Allocator) (*T, error) {
	b, err := allocValues[T](a, "new", 1)
	if err != nil {
		return nil, err
	}
	return raw.Pointer[T](b), nil
}

// Free frees a value of New. Freeing nil does nothing.
//
// # Errors
//
// Those of tlsf's FreeSized.
func Free[T any](a Allocator, p *T) error {
	return a.FreeSized(raw.First(p), int(reflect.TypeFor[T]().Size()))
}

// MakeSlice allocates a zeroed slice of T with this length and capacity. A capacity of 0 gives an empty slice that
// takes no memory. Appending within the capacity stays in the heap; beyond it, Go copies the slice to its own. FreeSlice frees
// it.
//
// # Errors
//
// tlsf.ErrInvalidSize for a negative length, a capacity below it, or a T of no size; tlsf.ErrTooLarge when the size
// overflows; those of New.
func MakeSlice[T any](a Allocator, length, capacity int) ([]T, error) {
	if length < 0 || capacity < length {
		return nil, fail("make slice", tlsf.ErrInvalidSize, int64(capacity), "length and capacity do not fit")
	}
	if capacity == 0 {
		return []T{}, nil
	}
	b, err := allocValues[T](a, "make slice", capacity)
	if err != nil {
		return nil, err
	}
	return raw.Slice[T](b, capacity)[:length], nil
}

// FreeSlice frees a slice of MakeSlice. Its length may differ from when it was made, its start and capacity must not. Another start is
// refused. A smaller capacity is refused unless the block could be one for it too: then the whole block is freed.
//
// # Errors
//
// Those of tlsf's FreeSized.
func FreeSlice[T any](a Allocator, s []T) error {
	if cap(s) == 0 {
		return nil
	}
	return a.FreeSized(raw.First(&s[:1][0]), cap(s)*int(reflect.TypeFor[T]().Size()))
}

// CloneString copies text into the heap. The result must not be used after FreeString: unlike every other string, it would
// change then. An empty text takes no memory.
func CloneString(a Allocator, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	b, err := a.Alloc(len(text))
	if err != nil {
		return "", err
	}
	copy(b, text)
	return raw.Text(b), nil
}

// FreeString frees a string of CloneString, which must be passed whole. A part with another start is refused. A shorter part with the
// same start is refused unless the block could be one for it too: then the whole block is freed. Freeing "" does nothing.
//
// # Errors
//
// Those of tlsf's FreeSized.
func FreeString(a Allocator, text string) error {
	return a.FreeSized(raw.TextStart(text), len(text))
}

// allocValues takes zeroed memory for n values.
func allocValues[T any](a Allocator, op string, n int) ([]byte, error) {
	t := reflect.TypeFor[T]()
	if path := pointerPath(t); path != "" {
		return nil, fail(op, tlsf.ErrHoldsPointers, int64(t.Size()), path)
	}
	switch size := int(t.Size()); {
	case size == 0:
		return nil, fail(op, tlsf.ErrInvalidSize, 0, t.String()+" has no size")
	case n > math.MaxInt/size:
		return nil, fail(op, tlsf.ErrTooLarge, int64(n), "that many "+t.String()+" overflow")
	default:
		b, err := a.Alloc(n * size)
		clear(b)
		return b, err
	}
}

func fail(op string, err error, size int64, detail string) error {
	return &tlsf.Error{Op: op, Err: err, Offset: -1, Size: size, Detail: detail}
}

// paths caches pointerPath by type: the result never changes, and looking it up must not allocate.
var paths sync.Map

// pointerPath is where t contains a Go pointer, as text; empty if it contains none.
func pointerPath(t reflect.Type) string {
	if path, ok := paths.Load(t); ok {
		return path.(string)
	}
	path := findPointer(t, t.String())
	paths.Store(t, path)
	return path
}

func findPointer(t reflect.Type, path string) string {
	switch t.Kind() {
	case reflect.Array:
		if t.Len() == 0 {
			return ""
		}
		return findPointer(t.Elem(), path+"[0]")
	case reflect.Struct:
		for k := range t.NumField() {
			if found := findPointer(t.Field(k).Type, path+"."+t.Field(k).Name); found != "" {
				return found
			}
		}
		return ""
	case reflect.Chan, reflect.Func, reflect.Interface, reflect.Map, reflect.Pointer, reflect.Slice, reflect.String,
		reflect.UnsafePointer:
		return path + " is a " + t.Kind().String()
	}
	return ""
}
