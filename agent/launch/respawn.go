package launch

import (
	"slices"
	"time"
)

// MaxRespawns is how often the process of a rank is restarted: one that dies more often
// has a reason that stays.
const MaxRespawns = 10

// replacementVariable tells package bootstrap that a process takes the place of a dead one.
const replacementVariable = "PLEACH_REPLACEMENT"

// panicked is the exit code of a Go program that panics.
const panicked = 2

// forgiveLate counts replacements that failed when all others had exited with 0 as ended:
// the job was over, and did not need them.
func (r *running) forgiveLate(outcomes []Outcome) {
	last := time.Duration(-1)
	for _, o := range outcomes {
		if o.Kind == Succeeded {
			last = max(last, o.After)
		}
	}
	for i := range outcomes {
		if o := &outcomes[i]; o.Kind == Failed && r.processes[i].again && last >= 0 && o.After > last {
			o.Kind, o.Text = Ended, "restarted too late"
		}
	}
}

// respawn restarts a process that has died while others live. A process that exits with
// another code has decided to.
func (r *running) respawn(p *rankProcess, o Outcome) bool {
	e := p.exit()
	if !r.Respawn || r.alive == 0 || r.interrupted != nil || e.signal == 0 && e.code != panicked {
		return false
	}
	if r.respawned[p.rank] == MaxRespawns {
		r.Output.notice("rank %d: restarted %d times already", p.rank, MaxRespawns)
		return false
	}
	r.respawned[p.rank]++
	next, err := r.startRank(p.rank, append(slices.Clone(r.Env), replacementVariable+"=1"))
	if err != nil {
		r.Output.notice("rank %d: %s after %v, and cannot be restarted: %v", p.rank, o.Text, o.After, err)
		return false
	}
	r.Output.notice("rank %d: %s after %v, and restarted", p.rank, o.Text, o.After)
	next.again = true
	r.membership.forget(p.rank)
	r.processes[p.rank] = next
	r.alive++
	return true
}
