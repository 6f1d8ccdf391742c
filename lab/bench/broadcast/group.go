package broadcast

import (
	"context"
	"fmt"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
)

// group is all members of a system.
type group interface {
	// broadcast has the root send a burst. It returns when every live member
	// that can be reached has it, or at the limit.
	broadcast(ctx context.Context, limit time.Duration) (outcome, error)
	// counts adds up what live members have counted.
	counts() (counts, error)
	close() error
}

// outcome is what came of a burst.
type outcome struct {
	complete int           // messages that every live member got
	took     time.Duration // if that is the whole burst
	cpu      time.Duration // if it is known only by burst
}

// plan is what a group is made from.
type plan struct {
	system      builtin
	members     int
	dead        map[int]bool
	size, burst int
	// reachable is how many live members besides the root the system can reach
	// at all. Others are not waited for.
	reachable int
}

func (p *plan) live() int { return p.members - len(p.dead) }

// newPlan chooses the dead, and counts the members that the system can reach past
// them.
func newPlan(c *Config, name string, dead int) (*plan, error) {
	s, ok := builtinOf(name)
	if !ok {
		return nil, fmt.Errorf("bench: there is no system %q", name)
	}
	tree, err := binomial(c.Members)
	if err != nil {
		return nil, err
	}
	burst, _ := c.rounds()
	p := &plan{system: s, members: c.Members, size: c.Size, burst: burst, dead: chooseDead(tree, dead, c.Seed)}
	p.reachable = p.live() - 1
	if s.tree != nil {
		tree, err = s.tree(c.Members)
		if err != nil {
			return nil, err
		}
		p.reachable = reachable(tree, p.dead)
	}
	return p, nil
}

// groupName is that of all groups.
const groupName = "bench"

// listen opens a socket for every member, and closes those of the dead: their
// addresses are known, but refuse connections.
func (p *plan) listen() (*launch.Sockets, error) {
	s, err := launch.Listen(groupName, p.members)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	// Only now, or the next one would get the same port.
	for r := range p.dead {
		s.Take(r).Close()
	}
	return s, nil
}
