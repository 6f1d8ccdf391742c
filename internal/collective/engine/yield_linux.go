package engine

import "syscall"

// yieldProcessor lets other processes run. The scheduler of Go does not hear of it, because
// it would start another thread if it took long.
func yieldProcessor() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
