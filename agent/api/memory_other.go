//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package api

// mapped returns memory of the heap.
func mapped(size int) (b []byte, free func(), err error) { return make([]byte, size), func() {}, nil }
