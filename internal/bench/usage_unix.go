//go:build unix

package bench

import (
	"fmt"
	"syscall"
	"time"
)

// processorTime is what this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// filesOfOurOwn is what the process needs besides members' sockets.
const filesOfOurOwn = 64

// checkOpenFiles says what to do before the work fails half way.
func checkOpenFiles(c *Config) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return nil // then the system will say
	}
	each := 0
	for _, name := range c.Systems {
		s, known := systemOf(name)
		switch more, _ := c.outside(name); {
		case c.Processes:
			each += filesPerProcess
		case known:
			each += s.files
		default:
			each += more.Files
		}
	}
	need, have := uint64(filesOfOurOwn+each*len(c.Dead)*c.Members), uint64(limit.Cur)
	if need > have {
		return fmt.Errorf("--members %d: about %d files would be open, and the limit is %d: raise it by ulimit -n %d, or choose fewer members, --dead or --compare", c.Members, need, have, need)
	}
	return nil
}
