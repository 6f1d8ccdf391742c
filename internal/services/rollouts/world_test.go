package rollouts

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// A simulated group. One log has the commands that the group has ordered, and each process applies
// it at its own pace. Processes are killed and started again, and cut off: they are removed from the
// view while they do what they were about to, and join again as another start. The reference applies
// each command at once, and the checks compare what members really did with what it says.

const (
	millisecond protocol.Time = 1e6
	second                    = 1e3 * millisecond
)

// bug is a mistake that the simulation plants, to see that the checks find it.
type bug int

const (
	noBug          bug = iota
	deafToVerdict      // a member applies the payload though its Take was refused
	gatesPass          // a gate that fails is reported as passed
	blindToDeaths      // views are not applied
	takesAgain         // a process that comes back is taken for the one before
	forgetsReverts     // a member reports that it has reverted before it has
)

// effect is what a member has really done for a rollout.
type effect struct {
	applied, reverted     int           // how often
	appliedAt, revertedAt protocol.Time // last
	gate                  string        // error of the last gate; "": it has passed
	asked                 bool
}

// parcel is a command that is on its way to the log.
type parcel struct {
	from    *proc
	life    uint64
	command Command
	worker  *worker // that waits for the verdict; nil: the clock, or an operator
}

// worker does the tasks of one rollout in one process.
type worker struct {
	task    Task
	until   protocol.Time
	busy    bool // with the task
	waiting bool // for the verdict of its command
}

// proc is a process of the group.
type proc struct {
	self    Process
	domain  string
	up, in  bool // it runs, and is in the view
	table   *Table
	at      int // commands of the log that it has applied
	view    View
	clock   Clock
	waits   bool // the command of its clock is on its way
	workers map[string]*worker
}

// entry is a command of the log.
type entry struct {
	bytes []byte
	parcel
}

type world struct {
	t       testing.TB
	seed    uint64
	rng     *rand.Rand
	bug     bug
	calm    bool // no more faults
	now     protocol.Time
	procs   []*proc
	number  uint64 // of the view
	log     []entry
	flying  []parcel
	truth   *Table
	specs   map[string]*Spec
	bad     map[string]int // percentage of gates that fail, by rollout
	effects map[string]map[string]*effect
	failed  map[string]bool // a failure was accepted, and the rollout was not resumed since
	wrong   []string
}

func newWorld(t testing.TB, seed uint64, size int, b bug) *world {
	w := &world{
		t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 7)), bug: b, truth: New(), number: 1, specs: map[string]*Spec{},
		bad: map[string]int{}, effects: map[string]map[string]*effect{}, failed: map[string]bool{},
	}
	for i := range size {
		w.procs = append(w.procs, &proc{
			self: Process{fmt.Sprintf("m%02d", i), 1}, domain: fmt.Sprint("zone-", i%3), up: true, in: true,
			table: New(), workers: map[string]*worker{},
		})
	}
	for _, p := range w.procs {
		p.view = w.view()
	}
	return w
}

func (w *world) complain(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// view is the newest view of the group.
func (w *world) view() View {
	v := View{Number: w.number}
	for _, p := range w.procs {
		if p.in {
			v.Members, v.Domains = append(v.Members, p.self), append(v.Domains, p.domain)
		}
	}
	return v
}

// members are the processes of the view that run.
func (w *world) members() []*proc {
	return slices.DeleteFunc(slices.Clone(w.procs), func(p *proc) bool { return !p.in || !p.up })
}

func (w *world) effect(rollout, id string) *effect {
	if w.effects[rollout] == nil {
		w.effects[rollout] = map[string]*effect{}
	}
	if w.effects[rollout][id] == nil {
		w.effects[rollout][id] = &effect{}
	}
	return w.effects[rollout][id]
}

// start has a process start a rollout.
func (w *world) start(p *proc, s Spec, bad int) {
	w.specs[s.ID], w.bad[s.ID] = &s, bad
	v := p.view
	c := Command{Op: Start, ID: s.ID, Spec: &s, View: &v}
	w.flying = append(w.flying, parcel{from: p, life: p.self.Incarnation, command: c})
}

// operate has a process ask something for an operator.
func (w *world) operate(p *proc, id string, op Op) {
	v := p.view
	w.flying = append(w.flying, parcel{from: p, life: p.self.Incarnation, command: Command{Op: op, ID: id, View: &v}})
}

// order puts a command into the log.
func (w *world) order(i int) {
	f := w.flying[i]
	w.flying = slices.Delete(w.flying, i, i+1)
	if w.bug == gatesPass && f.command.Op == Answer {
		f.command.Error = ""
	}
	if w.bug == blindToDeaths && f.command.Op == Seen {
		f.command.View = &View{Number: f.command.View.Number, Members: w.everybody()}
	}
	b, err := f.command.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	w.log = append(w.log, entry{b, f})
	before := make([]Rollout, len(w.truth.rollouts))
	for i, r := range w.truth.rollouts {
		before[i] = *r
		before[i].Members = slices.Clone(r.Members)
	}
	if v, _ := w.truth.Apply(b); v == OK {
		w.checkCommand(&f.command)
		for i := range before {
			w.checkWave(&before[i], &f.command)
		}
	}
}

// everybody is all processes as they were first seen.
func (w *world) everybody() (all []Process) {
	for id := range w.truth.members {
		all = append(all, Process{id, w.truth.members[id]})
	}
	slices.SortFunc(all, func(a, b Process) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// checkCommand checks a command that the group has accepted.
func (w *world) checkCommand(c *Command) {
	r := w.truth.find(c.ID)
	switch {
	case r == nil:
		return
	case (c.Op == Answer || c.Op == Report) && c.Error != "" && r.member(c.By.ID).State != Taken:
		w.failed[c.ID] = true
	case c.Op == Resume:
		w.failed[c.ID] = false
	case c.Op == Take && w.failed[c.ID]:
		w.complain("%s: %s takes it after a failure", c.ID, c.By.ID)
	case c.Op == Take && r.member(c.By.ID).Has != Some:
		w.complain("%s: %s has taken it, and the group does not know", c.ID, c.By.ID)
	}
}

// checkWave checks that the payload runs well at all members that have it, if a command has released
// another wave.
func (w *world) checkWave(r *Rollout, by *Command) {
	after := w.truth.find(r.ID)
	if after == nil || after.Wave == r.Wave {
		return
	}
	if by.Op == Resume { // which excuses members
		r.Members = after.Members
	}
	for i := range r.Members {
		m := &r.Members[i]
		if m.Wave > r.Wave || m.State == Lost || m.State == Skipped || !w.truth.alive(m.Process) {
			continue
		}
		switch e := w.effect(r.ID, m.ID); {
		case e.applied != 1 || !e.asked:
			w.complain("%s: wave %d is over, but %s of wave %d (%s) has applied it %d times, asked: %v",
				r.ID, r.Wave, m.ID, m.Wave, m.State, e.applied, e.asked)
		case e.gate != "":
			w.complain("%s: wave %d is over, but the gate of %s has failed", r.ID, r.Wave, m.ID)
		}
	}
}

// deliver has a process apply the next command of the log.
func (w *world) deliver(p *proc) {
	e := w.log[p.at]
	p.at++
	v, _ := p.table.Apply(e.bytes)
	if w.bug == takesAgain {
		w.mistake(p)
	}
	if e.from != p || e.life != p.self.Incarnation {
		return
	}
	if e.worker == nil {
		if e.command.Op == Tick || e.command.Op == Seen {
			p.waits = false
		}
		return
	}
	e.worker.waiting = false
	if w.bug == deafToVerdict && v == Late && e.command.Op == Take {
		w.do(p, &worker{task: Task{Kind: Put, Rollout: w.copyOf(p, e.command.ID)}})
	}
}

func (w *world) copyOf(p *proc, id string) *Rollout {
	if r := p.table.find(id); r != nil {
		return r
	}
	return &Rollout{Spec: Spec{ID: id}}
}

// mistake has a table believe that a process which has come back has lost what it had.
func (w *world) mistake(p *proc) {
	for _, r := range p.table.rollouts {
		for i := range r.Members {
			if m := &r.Members[i]; m.State == Lost && p.table.alive(m.Process) && r.Phase == Applying {
				m.State, m.Has = Released, Nothing
			}
		}
	}
}

// work has a process go on with one of its rollouts.
func (w *world) work(p *proc) {
	if len(p.table.rollouts) == 0 {
		return
	}
	r := p.table.rollouts[w.rng.IntN(len(p.table.rollouts))]
	k := p.workers[r.ID]
	if k == nil {
		k = &worker{}
		p.workers[r.ID] = k
	}
	switch {
	case k.waiting || k.busy && w.now < k.until:
	case k.busy:
		k.busy = false
		w.finish(p, k)
	default:
		task, ok := p.table.Task(r.ID, p.self)
		if !ok || !p.in {
			return
		}
		k.task = task
		if task.Kind == Begin {
			w.propose(p, k, "")
			return
		}
		k.busy, k.until = true, w.now+protocol.Time(w.rng.IntN(40))*millisecond
		if !w.calm && w.rng.IntN(60) == 0 {
			k.until += second // longer than the timeout
		}
		if w.bug == forgetsReverts && task.Kind == TakeBack && w.rng.IntN(3) == 0 {
			k.busy = false
			w.propose(p, k, "")
		}
	}
}

// finish ends what a worker was busy with, and reports it.
func (w *world) finish(p *proc, k *worker) {
	reason := w.do(p, k)
	w.propose(p, k, reason)
}

// do has a task take effect.
func (w *world) do(p *proc, k *worker) (reason string) {
	id := k.task.Rollout.ID
	e := w.effect(id, p.self.ID)
	switch k.task.Kind {
	case Put:
		e.applied++
		e.appliedAt = w.now
		r := w.truth.find(id)
		if e.applied > 1 {
			w.complain("%s: %s has applied it %d times", id, p.self.ID, e.applied)
		}
		if m := r.member(p.self.ID); m == nil || m.Has == Nothing {
			w.complain("%s: %s has applied it, and the group does not know", id, p.self.ID)
		}
		if w.rng.IntN(50) == 0 {
			reason = "no space left"
		}
	case Ask:
		e.asked, e.gate = true, ""
		if w.rng.IntN(100) < w.bad[id] {
			e.gate, reason = "not ready", "not ready"
		}
	case TakeBack:
		e.reverted++
		e.revertedAt = w.now
		if m := w.truth.find(id).member(p.self.ID); m == nil || m.Has == Nothing {
			w.complain("%s: %s has reverted what it never had", id, p.self.ID)
		}
		if w.rng.IntN(100) == 0 {
			reason = "read-only file system"
		}
	}
	return reason
}

// propose sends a worker's report. A process that is cut off sends nothing.
func (w *world) propose(p *proc, k *worker, reason string) {
	if !p.in {
		return
	}
	k.waiting = true
	w.flying = append(w.flying, parcel{p, p.self.Incarnation, k.task.Command(p.self, reason), k})
}

// tick has the clock of a process look.
func (w *world) tick(p *proc) {
	if p.waits || !p.in {
		return
	}
	if c, at, ok := p.clock.Next(w.now, p.table, &p.view, p.self); ok && at <= w.now {
		p.waits = true
		w.flying = append(w.flying, parcel{from: p, life: p.self.Incarnation, command: c})
	}
}

// remove kills a process, or cuts it off, if a majority of the view stays. What it has sent may be
// lost, or be ordered later.
func (w *world) remove(p *proc, kill bool) bool {
	if len(w.members()) <= len(w.view().Members)/2+1 {
		return false
	}
	p.in, p.up = false, !kill
	w.number++
	w.flying = slices.DeleteFunc(w.flying, func(f parcel) bool { return f.from == p && w.rng.IntN(2) == 0 })
	if kill {
		p.workers = map[string]*worker{}
	}
	return true
}

// admit has a process join, with the state of a member.
func (w *world) admit(p *proc) {
	for _, k := range p.workers { // it ends what it was about before it joins
		if k.busy && p.up {
			w.do(p, k)
		}
	}
	from := w.members()[w.rng.IntN(len(w.members()))]
	var b bytes.Buffer
	if err := from.table.Snapshot(&b); err != nil {
		w.t.Fatal(err)
	}
	w.number++
	*p = proc{
		self: Process{p.self.ID, w.number}, domain: p.domain, up: true, in: true, table: New(), at: from.at,
		workers: map[string]*worker{},
	}
	if err := p.table.Restore(&b); err != nil {
		w.t.Fatal(err)
	}
	p.view = w.view()
}

// step has one thing happen.
func (w *world) step() {
	w.now += protocol.Time(w.rng.IntN(4)) * millisecond
	p := w.procs[w.rng.IntN(len(w.procs))]
	switch n := w.rng.IntN(16); {
	case n < 3 && len(w.flying) > 0:
		w.order(w.rng.IntN(len(w.flying)))
	case n < 9 && p.in && p.up && p.at < len(w.log):
		w.deliver(p)
	case n < 13 && p.up:
		w.work(p)
	case n < 14 && p.in && p.up:
		w.tick(p)
	case n < 15 && p.in && p.up && p.view.Number < w.number:
		p.view = w.view()
	}
}

// fault has something go wrong, or an operator meddle.
func (w *world) fault() {
	p := w.procs[w.rng.IntN(len(w.procs))]
	switch n := w.rng.IntN(6); {
	case n < 2 && p.in && p.up:
		w.remove(p, n == 0)
	case n < 4 && !p.in:
		w.admit(p)
	case n == 4 && len(w.procs) < 12:
		p := &proc{self: Process{ID: fmt.Sprintf("m%02d", len(w.procs))}, domain: fmt.Sprint("zone-", len(w.procs)%3)}
		w.procs = append(w.procs, p)
		w.admit(p)
	case n == 5 && p.in && p.up:
		ids := slices.Sorted(maps.Keys(w.specs))
		if len(ids) > 0 {
			op := []Op{Pause, Pause, Resume, Resume, Resume, Stop, Undo}[w.rng.IntN(7)]
			w.operate(p, ids[w.rng.IntN(len(ids))], op)
		}
	}
}

// ended reports whether all rollouts have ended, everywhere.
func (w *world) ended() bool {
	for _, p := range w.members() {
		if p.at < len(w.log) || p.view.Number < w.number {
			return false
		}
		for _, r := range p.table.rollouts {
			if _, busy := p.table.Task(r.ID, p.self); busy || !r.Phase.Ended() {
				return false
			}
		}
		if p.table.wants(p.view.Number) {
			return false
		}
	}
	return len(w.flying) == 0
}

// maxCalm is how many steps a group needs at most to end its rollouts when nothing goes wrong.
const maxCalm = 60000

// finishAll has the group end all rollouts without faults.
func (w *world) finishAll() {
	w.calm = true
	for n := 0; !w.ended(); n++ {
		if n > maxCalm {
			b, _ := json.Marshal(w.truth.rollouts)
			w.complain("no end: %d commands, %d on their way, %s", len(w.log), len(w.flying), b)
			return
		}
		w.step()
		if n == maxCalm/4 { // a gate that fails now and then would pause its rollout again and again
			clear(w.bad)
		}
		if n%500 == 499 {
			for _, r := range w.truth.rollouts {
				if r.Paused {
					w.operate(w.members()[0], r.ID, Resume)
				}
			}
			w.now += 100 * millisecond
		}
	}
	w.checkEnd()
}

// checkEnd checks what has come of the rollouts.
func (w *world) checkEnd() {
	var want bytes.Buffer
	_ = w.truth.Snapshot(&want)
	for _, p := range w.members() {
		var got bytes.Buffer
		if _ = p.table.Snapshot(&got); got.String() != want.String() && w.bug != takesAgain {
			w.complain("%s has another state: %s, want %s", p.self.ID, &got, &want)
		}
	}
	for _, r := range w.truth.rollouts {
		for _, p := range w.members() {
			e, m := w.effect(r.ID, p.self.ID), r.member(p.self.ID)
			w.checkMember(r, m, e, p.self.ID)
		}
	}
}

func (w *world) checkMember(r *Rollout, m *Member, e *effect, id string) {
	switch {
	case r.Phase == Reverted && e.applied > 0 && (e.reverted == 0 || e.revertedAt < e.appliedAt):
		w.complain("%s is reverted, but not at %s: %+v", r.ID, id, m)
	case r.Phase != Reverted && e.reverted > 0:
		w.complain("%s is %s, but was reverted at %s", r.ID, r.Phase, id)
	case r.Phase == Done && m != nil && m.State == Passed && (e.applied != 1 || e.gate != ""):
		w.complain("%s is done, but %s has applied it %d times, and its gate: %q", r.ID, id, e.applied, e.gate)
	case r.Phase == Done && m != nil && m.State != Passed && m.State != Lost && m.State != Skipped:
		w.complain("%s is done, but %s is %s", r.ID, id, m.State)
	}
}
