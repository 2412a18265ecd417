//go:build !linux && !darwin

package mmap

import "fmt"

const offHeap = false

// reserve takes n bytes from Go's heap. A size that make refuses is an error; running out of memory ends the program, as
// everywhere in Go.
func reserve(n int) (mem []byte, err error) {
	defer func() {
		if refusal := recover(); refusal != nil {
			err = fmt.Errorf("%v", refusal)
		}
	}()
	return make([]byte, n), nil
}

func release([]byte) error { return nil }
