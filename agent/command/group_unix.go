//go:build unix

package command

import (
	"os/exec"
	"syscall"
)

// inOwnGroup lets the end of a command reach the children of its shell.
func inOwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
