// Package raw contains all uses of package unsafe in the module: reading the address of a slice, viewing a byte
// region as words, and viewing bytes as values of a type. Nothing here keeps a pointer or does arithmetic on one.
//
// # Safety
//
//   - Address turns a pointer into a number and never back.
//   - Words and Slice return a second view of the same memory. The result keeps the memory alive as the argument does,
//     is never longer than the argument, and needs the alignment that the caller has checked.
//   - Slice is only for types without Go pointers: the garbage collector does not look inside the memory.
package raw

import "unsafe"

// Address is where the slice starts, as a number. It stays the same through reslicing at the end, and is 0 for nil.
func Address(b []byte) uintptr {
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))
}

// Words is the region as 64-bit words. b must start at a multiple of 8; bytes beyond the last whole word are left out.
func Words(b []byte) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}

// Slice is the memory as n values of T. b must be aligned for T and hold them, and T must hold no Go pointers.
func Slice[T any](b []byte, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// Pointer is the memory as one T, under the conditions of Slice.
func Pointer[T any](b []byte) *T {
	return (*T)(unsafe.Pointer(unsafe.SliceData(b)))
}

// First is the first byte of a value's memory, for freeing it.
func First[T any](p *T) *byte {
	return (*byte)(unsafe.Pointer(p))
}

// Text is the bytes as a string that shares their memory: they must not change while it is used.
func Text(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// TextStart is the first byte of a string's memory, nil for an empty string.
func TextStart(s string) *byte {
	if s == "" {
		return nil
	}
	return unsafe.StringData(s)
}

// Byte is the one-byte slice at p, nil for nil.
func Byte(p *byte) []byte {
	if p == nil {
		return nil
	}
	return unsafe.Slice(p, 1)
}
