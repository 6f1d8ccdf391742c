//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package api

import "syscall"

// mapped returns memory outside the heap, and a function that frees it. In the heap, bodies that clients
// begin and do not finish would stay until the next garbage collection. Unused pages cost nothing.
func mapped(size int) (b []byte, free func(), err error) {
	b, err = syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	return b, func() { _ = syscall.Munmap(b) }, err
}
