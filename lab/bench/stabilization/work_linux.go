package stabilization

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
)

// work is what processes have done. Where many share few processors, a view change
// takes as long as the work of all together. Work varies less than time, which also
// depends on other load.
type work struct {
	cpu        time.Duration // of all their threads
	timeslices int           // how often one of those got a processor
}

func (w work) minus(o work) work { return work{w.cpu - o.cpu, w.timeslices - o.timeslices} }

// workOf reads it from the system. It costs the processes nothing. One that ends
// meanwhile counts for nothing.
func workOf(processes []*launch.Process) (sum work) {
	for _, p := range processes {
		if p == nil {
			continue
		}
		threads, _ := filepath.Glob("/proc/" + strconv.Itoa(p.PID()) + "/task/*/schedstat")
		for _, file := range threads {
			text, err := os.ReadFile(file)
			if fields := strings.Fields(string(text)); err == nil && len(fields) == 3 {
				cpu, _ := strconv.ParseInt(fields[0], 10, 64)
				timeslices, _ := strconv.Atoi(fields[2])
				sum.cpu += time.Duration(cpu)
				sum.timeslices += timeslices
			}
		}
	}
	return sum
}
