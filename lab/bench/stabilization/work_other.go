//go:build !linux

package stabilization

import (
	"time"

	"github.com/pleach-go/pleach/agent/launch"
)

// work would be what processes have done: here the system does not tell.
type work struct {
	cpu        time.Duration
	timeslices int
}

func (w work) minus(work) work { return work{} }

func workOf([]*launch.Process) work { return work{} }
