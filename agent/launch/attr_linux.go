package launch

import "syscall"

// attributes makes a process the leader of a process group. With dieWithParent
// the kernel kills it when the thread that started it ends.
func attributes(dieWithParent bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	if dieWithParent {
		a.Pdeathsig = syscall.SIGKILL
	}
	return a
}
