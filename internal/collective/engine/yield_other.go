//go:build !linux

package engine

import "runtime"

// yieldProcessor lets other goroutines run.
func yieldProcessor() { runtime.Gosched() }
