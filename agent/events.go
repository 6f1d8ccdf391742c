package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/config"
	"github.com/pleach-go/pleach/agent/retention"
	"github.com/pleach-go/pleach/fleet"
)

// The agent tells programs and handlers which members join, leave, fail and change, and when
// the quorum is lost and regained. All members that have done so with one view are in one
// event. An agent that was away compares what it finds with what it knew before.

// What is retained of events.
const (
	retainedEvents     = 1000
	retainedEventBytes = 1 << 20
)

// awayCause is that of members which have gone while the agent was none itself.
const awayCause = "gone while this agent was not a member"

// watch is what the agent has told of its group. It is used by one goroutine at a time.
type watch struct {
	members map[process]pleach.Member
	lost    bool // the quorum
}

// process is a start of a member.
type process struct {
	id          string
	incarnation uint64
}

// Events implements [api.Agent].
func (a *Agent) Events() *retention.Log { return a.events }

// follow tells of the views of a membership, until that or ctx ends.
func (a *Agent) follow(ctx context.Context, g *pleach.Group) {
	for v := range g.Views(ctx) {
		causes := make(map[string]pleach.MemberChange)
		for _, view := range g.Status().History {
			for _, c := range view.Changes {
				causes[c.ID] = c
			}
		}
		for _, e := range a.watched.next(v, causes) {
			a.tell(e)
		}
	}
}

// tell retains an event.
func (a *Agent) tell(e api.Event) {
	e.Time = time.Now()
	if b, err := json.Marshal(e); err == nil { // it has no value that cannot be written
		a.events.Add(retention.Message{Topic: e.Event, View: e.View, Time: e.Time, Data: b})
	}
}

// next returns what has changed with a view. In the first one, all members have joined.
func (w *watch) next(v pleach.View, causes map[string]pleach.MemberChange) (events []api.Event) {
	now := make(map[process]pleach.Member, v.Size())
	for _, m := range v.Members() {
		now[process{m.ID, m.Incarnation}] = m
	}
	changed := make(map[string][]api.EventMember) // by event
	for p, m := range w.members {
		if _, stays := now[p]; !stays {
			cause := causeOf(causes, m.ID)
			changed[cause.event] = append(changed[cause.event], cause.member(m))
		}
	}
	for p, m := range now {
		switch before, was := w.members[p]; {
		case !was:
			changed[api.EventJoin] = append(changed[api.EventJoin], memberCause{cause: string(pleach.CauseJoined)}.member(m))
		case fleet.ProgramMeta(before.Meta) != "" && fleet.ProgramMeta(before.Meta) != fleet.ProgramMeta(m.Meta):
			changed[api.EventUpdate] = append(changed[api.EventUpdate],
				memberCause{cause: string(pleach.CauseChanged)}.member(m))
		}
	}
	w.members = now
	for _, name := range []string{api.EventFailed, api.EventLeave, api.EventJoin, api.EventUpdate} {
		if members := changed[name]; len(members) > 0 {
			slices.SortFunc(members, func(a, b api.EventMember) int { return cmp.Compare(a.Rank, b.Rank) })
			events = append(events, api.Event{Event: name, View: v.Number, Members: members})
		}
	}
	return append(events, w.quorum(v)...)
}

// quorum returns that the quorum is lost, or regained.
func (w *watch) quorum(v pleach.View) []api.Event {
	if lost := v.Err != nil; lost != w.lost {
		w.lost = lost
		e := api.Event{Event: api.EventQuorumRegained, View: v.Number, Members: []api.EventMember{}}
		if lost {
			e.Event, e.Reason = api.EventQuorumLost, reasonOf(v.Err)
		}
		return []api.Event{e}
	}
	return nil
}

// memberCause is why a member is in an event.
type memberCause struct {
	event, cause, detail string
	by                   []int
}

func (c memberCause) member(m pleach.Member) api.EventMember {
	return api.EventMember{
		MemberRef: api.MemberRef{Rank: m.Rank, ID: m.ID}, Address: m.Address, Meta: fleet.ProgramMeta(m.Meta),
		Cause: c.cause, By: c.by, Detail: c.detail,
	}
}

// causeOf finds out why a member is gone.
func causeOf(causes map[string]pleach.MemberChange, id string) memberCause {
	switch c, known := causes[id]; {
	case !known || !c.Gone() && c.Cause != pleach.CauseJoined:
		return memberCause{event: api.EventFailed, cause: awayCause}
	case c.Cause == pleach.CauseLeft:
		return memberCause{event: api.EventLeave, cause: string(c.Cause)}
	case c.Cause == pleach.CauseJoined: // another process with its ID
		return memberCause{event: api.EventFailed, cause: string(pleach.CauseReplaced)}
	default:
		return memberCause{event: api.EventFailed, cause: string(c.Cause), by: c.By, detail: c.Detail}
	}
}

// eventInput is an event as the standard input of a handler: a line for each member, with its
// ID, address, cause and tags.
func eventInput(e *api.Event) []byte {
	var b strings.Builder
	for _, m := range e.Members {
		var tags []string
		for key, value := range config.Tags(m.Meta) {
			tags = append(tags, key+"="+value)
		}
		slices.Sort(tags)
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\n", oneLine(m.ID), oneLine(m.Address), oneLine(m.Cause),
			oneLine(strings.Join(tags, ",")))
	}
	return []byte(b.String())
}

// oneLine keeps a text from ending its field or line.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text)
}

// runEvent runs the handler of an event.
func (a *Agent) runEvent(ctx context.Context, c *config.Handler, id string, m *retention.Message) {
	var e api.Event
	if err := json.Unmarshal(m.Data, &e); err != nil {
		return // tell has written it
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	variables := append(a.variables(), "PLEACH_EVENT="+e.Event, fmt.Sprint("PLEACH_VIEW=", e.View),
		"PLEACH_REASON="+e.Reason, "PLEACH_MESSAGE_ID="+id)
	if _, err := c.Run.Run(ctx, eventInput(&e), variables...); err != nil {
		a.log.Warn("handler", "event", e.Event, "error", err)
	}
}
