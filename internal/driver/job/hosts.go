package job

import (
	"github.com/pleach-go/pleach/internal/collective/engine"
	"github.com/pleach-go/pleach/internal/driver/admission"
)

// Hosts counts the hosts in the processes' addresses. Two names of one host count as
// two, which is safe.
func Hosts(addresses []string) int {
	hosts := make(map[string]bool)
	for _, a := range addresses {
		hosts[admission.HostOf(a)] = true
	}
	return len(hosts)
}

// Placement returns which processes of a job share a host, by the hosts in their IDs, which
// all processes know alike.
func Placement(job []string) *engine.Placement {
	hosts := make([]string, len(job))
	for rank, id := range job {
		hosts[rank] = admission.HostOf(id)
	}
	return engine.NewPlacement(hosts)
}
