//go:build linux || darwin

package mmap

import "syscall"

const offHeap = true

// reserve maps n bytes of zeroes. No swap space is set aside: pages count when they are touched.
func reserve(n int) ([]byte, error) {
	return syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
}

func release(mem []byte) error { return syscall.Munmap(mem) }
