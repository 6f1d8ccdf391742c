package pleach

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"sync"

	"github.com/pleach-go/pleach/internal/driver/detection"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// View is a numbered, agreed set of members: all members of a view have the same
// one. Numbers rise by one. A rank without a member is a hole, which stays until a
// joiner fills it.
type View struct {
	Number uint64
	// Version is the protocol version of the group, which all members speak: see
	// [RaiseVersion].
	Version int
	// Slots is the number of ranks, holes included.
	Slots int
	// Joined and Left are the members that differ from the view that
	// [Group.Views] yielded before. They are nil elsewhere.
	Joined, Left []Member
	// Err is a [*QuorumError] while too few of the members are reachable to decide a view. With
	// Config.Recovery.Rejoin it is the reason why this process is not a member, until it has joined again and a program
	// that receives has got the [*GapError], and the [State].
	// Otherwise it is nil.
	Err error

	members *memberList // nil: there are none
}

// memberList is the members of a view. All that hold the view share it.
type memberList struct {
	membership.Members
	once sync.Once
	list []Member // built when it is first asked for: in a large group that takes a while
}

// Member is a process in a view.
type Member struct {
	Rank int
	// ID names the process across restarts. Incarnation tells its starts apart: it is
	// the number of the view that has admitted the process.
	ID            string
	Incarnation   uint64
	Address       string // host:port
	FailureDomain string // what fails together with it; may be empty
	// Meta is what the process tells about itself: see Config.Meta and [Group.SetMeta].
	// All members of a view see the same.
	Meta string
	// Observer says that the process does not count for a quorum: see Config.Observer and
	// [Group.SetObserver].
	Observer bool
	// Version is the highest protocol version that the process speaks.
	Version int
	// Nonce is a random number that the process has drawn. No process of another group has
	// the same, even if name, ID, address and incarnation are. Only members know it:
	// [Inspect] returns a hash of it. It is zero in a group that was started as a whole.
	Nonce uint64
}

// Members returns the members in order of rank. The slice must not be changed: it is
// made by the first call, and all that hold this view share it.
func (v View) Members() []Member {
	l := v.members
	if l == nil {
		return nil
	}
	l.once.Do(func() {
		l.list = make([]Member, 0, l.Len())
		for _, m := range l.All() {
			l.list = append(l.list, memberOf(m))
		}
	})
	return l.list
}

// Size returns the number of members.
func (v View) Size() int { return v.list().Len() }

// Member returns the member of a rank, or false if the rank is not in the view.
func (v View) Member(rank int) (m Member, ok bool) {
	if found := v.list().Find(protocol.Rank(rank)); found != nil {
		return memberOf(found), true
	}
	return m, false
}

// list returns the members as the membership protocol has them.
func (v View) list() (l membership.Members) {
	if v.members != nil {
		l = v.members.Members
	}
	return l
}

func memberOf(m *membership.Member) Member {
	return Member{
		int(m.Rank), m.Identity, m.Incarnation, m.Address, m.Domain, m.Meta, m.Observer, int(m.Version),
		m.Nonce,
	}
}

// Voters returns the members that count for a quorum, in order of rank: all but the observers.
func (v View) Voters() []Member {
	return slices.DeleteFunc(slices.Clone(v.Members()), func(m Member) bool { return m.Observer })
}

// Leader returns the voter with the lowest rank, which coordinates view changes.
// All members of a view agree on it. The zero View has none.
func (v View) Leader() (m Member) {
	list := membership.View{Members: v.list()}
	if leader := list.Leader(); leader != nil {
		m = memberOf(leader)
	}
	return m
}

// Has reports whether a rank is in the view.
func (v View) Has(rank int) bool {
	_, ok := v.Member(rank)
	return ok
}

// NewView returns a view of members with distinct ranks, for the tests of a program.
func NewView(number uint64, slots int, members ...Member) View {
	list := make([]membership.Member, len(members))
	for i, m := range members {
		list[i] = membership.Member{
			Rank: protocol.Rank(m.Rank), Identity: m.ID, Incarnation: m.Incarnation, Address: m.Address, Domain: m.FailureDomain,
			Meta: m.Meta, Observer: m.Observer, Version: uint16(m.Version), Nonce: m.Nonce,
		}
	}
	return *viewOf(&membership.View{Number: number, Slots: protocol.Rank(slots), Members: membership.MembersOf(list...)})
}

func viewOf(v *membership.View) *View {
	return &View{Number: v.Number, Version: int(v.Version), Slots: int(v.Slots), members: &memberList{Members: v.Members}}
}

// View returns the current view. Its slices must not be changed. A static group
// has only one.
func (g *Group) View() View {
	s := g.session()
	v := s.View()
	switch err := s.Err(); {
	case err != nil && g.Err() == nil:
		v.Err = err
	case err == nil && v.Err == nil && g.config.Recovery.Rejoin && s.replica.gap != nil && g.delivery.progress.Waits():
		v.Err = s.replica.gap.Err
	}
	return v
}

// View returns the current view of a membership.
func (c *core) View() View {
	v, shown := c.view.Load(), c.shown.Load()
	if shown == nil || shown.Number != v.Number {
		shown = viewOf(v)
		c.shown.Store(shown)
	}
	view := *shown
	if lost := quorumLost(c); lost != nil && lost.View == view.Number {
		view.Err = lost
	}
	return view
}

// Views yields the current view, and then each new one. A slow caller gets only
// the latest. The first one has no Joined and Left. When the quorum is lost, Views
// yields the current view again, with [View.Err], and once more when it is regained in
// that view. It ends when ctx ends or this
// process is no longer a member ([Group.Err] returns the reason); the last view may be one
// without this process. Each call has its own sequence. Views and Messages are not
// ordered with each other: [Message.View] is the view to which a message belongs.
func (g *Group) Views(ctx context.Context) iter.Seq[View] {
	return func(yield func(View) bool) {
		for last := (View{}); ; {
			s := g.session()
			changed := s.changed.Wait()
			if v := g.View(); v.Number > last.Number || (v.Err == nil) != (last.Err == nil) {
				if last.Number > 0 && v.Number > last.Number {
					v.Joined, v.Left = membersNotIn(v.list(), last.list()), membersNotIn(last.list(), v.list())
				}
				if !yield(v) {
					return
				}
				last = v
				continue
			}
			ended := s.await(ctx, changed) != nil
			if told := (g.View().Err == nil) == (last.Err == nil); ended && told && !g.goesOn(ctx, s, nil, nil) {
				return
			}
		}
	}
}

// membersNotIn returns the members of a view that are not in another. A process
// that restarted has a new incarnation and counts as another member.
func membersNotIn(v, other membership.Members) (members []Member) {
	for m := range v.Since(other) {
		members = append(members, memberOf(m))
	}
	return members
}

// installView publishes a view, within node.Do.
func (g *session) installView(v *membership.View) {
	before := g.view.Swap(v) // first: the transport verifies with it
	if m := v.Members.Find(g.self.Rank); m != nil && m.Incarnation == g.self.Incarnation {
		g.own.Store(m)
	}
	g.candidates.noteAdmissions(v, before.Members)
	g.setPeers(v, before.Members)
	for gone := range before.Members.Since(v.Members) {
		g.node.Forget(gone.Rank)
	}
	g.detection.Watch(v, g.network.elsewhere.Address)
	g.direct.channel.Install(v)
	g.catchUp.Installed(v)
	g.replica.installed(v)
	g.faults.logView(g.faults.noteView(v, before.Members))
	if v.Version > before.Version {
		g.log.Info("protocol version raised", "view", v.Number, "version", v.Version)
	}
	g.changed.Notify()
}

// logView logs a view, and a line for each member that has come or gone: why, and which
// member has found out.
func (f *faults) logView(v *ViewChange) {
	if !f.log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	joined, left, changed := []string{}, []string{}, []string{}
	for i := range v.Changes {
		c := &v.Changes[i]
		args := []any{"view", v.Number, "peer", c.Rank, "id", c.ID, "cause", c.Cause}
		for _, by := range c.By {
			args = append(args, "by", by)
		}
		if c.Detail != "" {
			args = append(args, "detail", c.Detail)
		}
		switch {
		case c.Gone():
			left = append(left, c.ID)
			f.log.Info("member gone", args...)
		case c.Cause == CauseJoined:
			joined = append(joined, c.ID)
			f.log.Info("member joined", args...)
		default:
			changed = append(changed, c.ID)
		}
	}
	f.log.Info("view", "number", v.Number, "members", v.Members, "joined", joined, "left", left, "changed", changed,
		"omitted", v.Omitted)
}

// SetMeta changes what this process tells the others about itself ([Member.Meta]), 512
// bytes at most. It blocks until a view has it, and all members of that view see the same
// then. If ctx ends first, a later view may still have it. Each change is a view change, so
// it is for what changes rarely.
func (g *Group) SetMeta(ctx context.Context, meta string) error {
	s := g.session()
	ask := func(now protocol.Time) error { return s.machine.SetMeta(now, meta) }
	return s.wrap("set meta", s.changeSelf(ctx, ask, func(m *Member) bool { return m.Meta == meta }))
}

// SetObserver makes this process an observer, or a voter again: see Config.Observer. It blocks until
// a view has the change, which the voters of the view before decide. If ctx ends first, a later
// view may still have it. It returns [ErrLastVoter] if no other member votes.
func (g *Group) SetObserver(ctx context.Context, observer bool) error {
	s := g.session()
	ask := func(now protocol.Time) error { return publicError(s.machine.SetObserver(now, observer)) }
	return s.wrap("set observer", s.changeSelf(ctx, ask, func(m *Member) bool { return m.Observer == observer }))
}

// changeSelf asks for a view with this member changed, and waits until there is one. It asks again
// in each view: what was possible in one may be refused in the next.
func (g *session) changeSelf(ctx context.Context, ask func(now protocol.Time) error, done func(*Member) bool) error {
	if g.machine.Static() {
		return ErrStatic
	}
	select {
	case g.metaLock <- struct{}{}:
		defer func() { <-g.metaLock }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		changed := g.changed.Wait()
		self := g.Self()
		if done(&self) {
			return nil
		}
		var refused error
		if err := g.node.Do(func(now protocol.Time) { refused = ask(now) }); err != nil {
			return ErrClosed
		}
		if refused != nil {
			return refused
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-g.life.Done():
			return g.Err()
		}
	}
}

// setPeers tells the transport which processes are members; before are those that it
// knows.
func (g *session) setPeers(v *membership.View, before membership.Members) {
	if g.network.roster != nil {
		g.network.roster.SetView(detection.Roster(v, g.network.elsewhere.Address))
		return
	}
	if g.network.addresses == nil {
		return
	}
	for m := range v.Members.Since(before) {
		if m.Rank != g.self.Rank {
			g.network.addresses.SetPeer(m.Rank, g.network.elsewhere.Address(m))
		}
	}
}
