package simulation

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/internal/machine/lifecycle"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// disk is a data folder, as the root package has it: what was synced, and maybe a later state
// that only follows the view, and is lost when the power goes.
type disk struct {
	saves             uint64
	synced, following *image
}

// image is the content of a file.
type image struct {
	saves, next, starts uint64
	state               []byte
	former              *membership.SavedVote
}

// errCrashed is what a process gets that crashes while it saves, and errFull what one gets
// that cannot.
var (
	errCrashed = errors.New("crashed")
	errFull    = errors.New("no space left")
)

// load begins with what the disk has, and returns the place that is there. It saves the
// nonce under which the process asks to join before any other hears of it.
func (p *process) load() (place *membership.SavedVote, ok bool) {
	s, l, d := p.sim, &p.life, &p.host.disk
	if !s.plan.durable {
		l.next = s.nonce()
		s.record(p, "starts at %s", p.address)
		return nil, true
	}
	var i image
	if d.synced != nil {
		i = *d.synced
	}
	if d.following != nil && (d.following.saves > i.saves || s.has(olderFileCounts)) {
		i = *d.following
	}
	l.next, l.starts, l.former = i.next, i.starts+1, i.former
	if l.next == 0 {
		l.next = s.nonce()
	}
	if len(i.state) > 0 {
		var err error
		place, err = membership.DecodeSavedVote(i.state)
		if err != nil {
			s.checker.fail("%v cannot read its disk: %v", p, err)
			return nil, false
		}
		s.record(p, "starts at %s as incarnation %d of %v", p.address, place.Self.Incarnation, &place.View)
	} else {
		s.record(p, "starts at %s without a place", p.address)
	}
	return place, p.save(i.state, true) == nil
}

// save saves a place, which may be nothing. The process may crash before and after.
func (p *process) save(state []byte, sync bool) error {
	if p.mayCrash() {
		return errCrashed
	}
	d, l := &p.host.disk, &p.life
	d.saves++
	i := &image{d.saves, l.next, l.starts, state, l.former}
	p.sim.result.Saves++
	switch {
	case !sync:
		p.sim.record(p, "saves %s without sync", l.saved(state))
		d.following = i
		if p.sim.has(unsyncedReplacesSaved) {
			d.synced = nil
		}
	case p.sim.has(voteToldBeforeSaved):
		p.sim.after(unsavedTime, func() { p.do(func() { d.synced = i }) })
	default:
		p.sim.record(p, "saves %s", l.saved(state))
		d.synced = i
	}
	if p.mayCrash() {
		return errCrashed
	}
	return nil
}

// saveLater saves the state of a member or a seat beside it: the disk takes its time, and may
// be full for a while.
func (p *process) saveLater(state []byte, sync bool) {
	s, roles := p.sim, p.roles
	s.after(s.diskTime(), func() {
		p.do(func() {
			if p.roles != roles {
				return // the member that follows a seat saves more
			}
			err := errFull
			if s.calm || s.rng.IntN(fullDisk) > 0 {
				err = p.save(state, sync)
			}
			p.step(func() { p.role.Saved(s.now, err) })
		})
	})
}

// One of so many saves fails because the disk is full.
const fullDisk = 100

// diskTime draws how long a save takes. Some take seconds.
func (s *Simulation) diskTime() protocol.Time {
	if !s.calm && s.rng.IntN(100) == 0 {
		return s.between(0, 3*second)
	}
	return s.between(0, 5*millisecond)
}

// unsavedTime is how late a vote is saved that is told before.
const unsavedTime = 20 * millisecond

// savedPlace prints what is saved, for people.
type savedPlace struct {
	state []byte
	next  uint64
}

func (l *life) saved(state []byte) savedPlace { return savedPlace{state, l.next} }

func (s savedPlace) String() string {
	text := "no place"
	if place, err := membership.DecodeSavedVote(s.state); err == nil {
		text = fmt.Sprintf("its vote in %v as incarnation %d", &place.View, place.Self.Incarnation)
	}
	if s.next != 0 {
		text += fmt.Sprintf(", nonce %d", s.next)
	}
	return text
}

// enterDisk saves the place of a process that becomes a member, before it says anything.
func (p *process) enterDisk(b *lifecycle.Membership) {
	if p.sim.plan.durable && !p.sim.has(memberBeginsUnsaved) {
		p.life.next, p.life.former = 0, nil
		_ = p.save(membership.NewSavedVote(b.Self, b.View, b.Decisions).Encode(), true)
	}
}

// saveVote saves the state of a member.
func (p *process) saveVote(state []byte, sync bool) {
	p.life.next, p.life.former = 0, nil
	p.saveLater(state, sync)
}

// forgetVote saves that the process is no member any more, and the view that it is not in.
func (p *process) forgetVote() {
	l := &p.life
	p.group.left[p.key()] = true
	if !p.sim.plan.durable {
		return
	}
	l.next, l.starts = 0, 0
	l.former = membership.NewSavedVote(membership.Member{}, *l.last, p.machine.DecisionsUpTo(l.last.Number))
	_ = p.save(nil, true)
}

// mayCrash crashes a process now and then, at an action, and reports whether it has ended.
func (p *process) mayCrash() bool {
	s := p.sim
	if s.plan.fragile > 0 && s.plan.crashes > 0 && !s.calm && s.begun && p.state != ended &&
		s.rng.IntN(s.plan.fragile) == 0 {
		s.plan.crashes--
		p.crash()
		if s.rng.IntN(3) == 0 {
			p.host.disk.following = nil
		}
		s.restartAfter(s.between(millisecond, second), p)
	}
	return p.state == ended
}
