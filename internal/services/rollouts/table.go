package rollouts

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// Limits of a table.
const (
	MaxRollouts = 16      // that are kept; the oldest one that has ended makes room
	MaxMembers  = 4096    // of a group
	MaxPayload  = 1 << 20 // bytes of a payload and its revert together
	MaxName     = 255     // bytes of an ID, a name and a gate
	MaxReason   = 512     // bytes of a reason
)

// Phase is where a rollout is.
type Phase string

// The phases. The last three are ends.
const (
	Applying  Phase = "applying"  // the members of the wave apply the payload
	Holding   Phase = "holding"   // the payload runs
	Asking    Phase = "asking"    // the members that have the payload are asked for their gates
	Reverting Phase = "reverting" // the members that may have the payload revert it
	Done      Phase = "done"      // all waves have passed
	Stopped   Phase = "stopped"   // no member gets the payload any more
	Reverted  Phase = "reverted"  // no member of the view has the payload any more
)

// Ended reports whether a rollout has ended.
func (p Phase) Ended() bool { return p == Done || p == Stopped || p == Reverted }

// State is what is known of a member in a rollout.
type State string

// The states. Lost members were released, and have died or left the view before the rollout ended.
const (
	Waiting   State = "waiting"      // for its wave
	Released  State = "released"     // it may begin
	Taken     State = "taken"        // it has begun, and may have the payload
	Applied   State = "applied"      // it has the payload
	Passed    State = "passed"       // its gate has passed in this wave
	Failed    State = "failed"       // it could not apply the payload, its gate has failed, or it did not report
	Lost      State = "lost"         // it died before the wave was over
	Skipped   State = "skipped"      // it was lost, and an operator resumed the rollout; or its wave does not come
	Undoing   State = "reverting"    // it may have the payload, and is to revert it
	Clean     State = "reverted"     // it has reverted the payload
	Unchanged State = "not reverted" // it could not revert the payload
)

// Possession is what a member has of a payload.
type Possession string

// A member has nothing, has begun to apply the payload, has applied it, or could not.
const (
	Nothing Possession = ""
	Some    Possession = "some"
	All     Possession = "all"
	Broken  Possession = "broken"
)

// Process is a process of the group: its ID, and the start that it is.
type Process struct {
	ID          string `json:"id"`
	Incarnation uint64 `json:"incarnation"`
}

// Member is a process in a rollout.
type Member struct {
	Process
	Domain string `json:"domain,omitempty"`
	Wave   int    `json:"wave"` // from 1
	State  State  `json:"state"`
	// Has is what the member has of the payload.
	Has    Possession `json:"has,omitempty"`
	Reason string     `json:"reason,omitempty"`
}

// Spec is what is rolled out, and how.
type Spec struct {
	ID   string `json:"id"` // differs from that of every other rollout
	Name string `json:"name,omitempty"`
	// Payload and Revert are for the members to understand. Without Revert nothing is reverted.
	Payload []byte `json:"payload,omitempty"`
	Revert  []byte `json:"revert,omitempty"`
	Gate    string `json:"gate,omitempty"`
	Waves   []Size `json:"waves"`
	// ByDomain has sizes count failure domains, which get the payload as a whole.
	ByDomain bool          `json:"by_domain,omitempty"`
	Hold     protocol.Time `json:"hold"`
	Timeout  protocol.Time `json:"timeout"` // of each step, for all of its members
	// Deaths has each lost member fail the rollout, and PauseOnFailure has a failed one pause.
	Deaths         bool `json:"stop_on_death,omitempty"`
	PauseOnFailure bool `json:"pause_on_failure,omitempty"`
}

// Rollout is a payload on its way.
type Rollout struct {
	Spec
	Phase  Phase  `json:"phase"`
	Paused bool   `json:"paused,omitempty"`
	Wave   int    `json:"wave"` // that is released, from 1
	Last   int    `json:"last"` // number of the last wave
	Reason string `json:"reason,omitempty"`
	// Step counts what has happened: commands for an earlier one come too late.
	Step    uint64   `json:"step"`
	Members []Member `json:"members"` // by their wave, and in it in the order in which it was filled
}

// View is a view of the group.
type View struct {
	Number  uint64    `json:"number"`
	Members []Process `json:"members"`
	// Domains are the failure domains of the members. Only [Start] needs them.
	Domains []string `json:"domains,omitempty"`
}

// Table is the rollouts of a group.
type Table struct {
	rollouts []*Rollout // oldest first
	view     uint64     // number of the newest view that is known
	members  map[string]uint64
}

// New returns a table without rollouts.
func New() *Table { return &Table{members: make(map[string]uint64)} }

// Rollouts returns the rollouts, oldest first. They are not changed, but by Apply and Restore.
func (t *Table) Rollouts() []*Rollout { return t.rollouts }

// find returns the rollout of an ID, or nil.
func (t *Table) find(id string) *Rollout {
	if i := slices.IndexFunc(t.rollouts, func(r *Rollout) bool { return r.ID == id }); i >= 0 {
		return t.rollouts[i]
	}
	return nil
}

// alive reports whether a process is in the newest view that is known.
func (t *Table) alive(p Process) bool {
	incarnation, in := t.members[p.ID]
	return in && incarnation == p.Incarnation
}

// member returns the member of an ID, or nil.
func (r *Rollout) member(id string) *Member {
	if i := slices.IndexFunc(r.Members, func(m Member) bool { return m.ID == id }); i >= 0 {
		return &r.Members[i]
	}
	return nil
}

// snapshot is a table as it is written.
type snapshot struct {
	Rollouts []*Rollout        `json:"rollouts"`
	View     uint64            `json:"view"`
	Members  map[string]uint64 `json:"members"`
}

// Snapshot writes the state.
func (t *Table) Snapshot(w io.Writer) error {
	return json.NewEncoder(w).Encode(snapshot{t.rollouts, t.view, t.members})
}

// Restore replaces the state by one that another member has written.
func (t *Table) Restore(r io.Reader) error {
	var s snapshot
	if err := json.NewDecoder(r).Decode(&s); err != nil {
		return fmt.Errorf("rollouts: %w", err)
	}
	t.rollouts, t.view, t.members = s.Rollouts, s.View, s.Members
	if t.members == nil {
		t.members = make(map[string]uint64)
	}
	return nil
}
