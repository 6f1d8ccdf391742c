//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package api

import "syscall"

// mapped returns memory beside the heap, and what gives it back: the garbage collector lets a heap grow
// by half before it looks at it, and would count what a client sends. Pages that are not used cost nothing.
func mapped(size int) (b []byte, free func(), err error) {
	b, err = syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	return b, func() { _ = syscall.Munmap(b) }, err
}
