// Package api is the local HTTP API of an agent: JSON, and server-sent events for messages.
// openapi.yaml describes it, and a test holds the two together.
package api

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/retention"
	"github.com/pleach-go/pleach/agent/transfer"
)

// Agent is what the API makes available. Before the agent is a member of its group, its
// calls return [ErrNotMember].
type Agent interface {
	Keys
	Locks
	Shards
	Rollouts
	// Broadcast sends to all members and to the subscribers of this agent. If stable is
	// true, it waits until every member has the message.
	Broadcast(ctx context.Context, topic string, data []byte, stable bool) (*Receipt, error)
	// BroadcastFleet sends to all members of all zones. If stable is true, it waits until every
	// member of this agent's zone has the message: each of them passes it on to the other zones.
	BroadcastFleet(ctx context.Context, topic string, data []byte, stable bool) (*Receipt, error)
	// QueryFleet is Query for all members of all zones, and Fleet what the zones say of
	// themselves and their links.
	QueryFleet(ctx context.Context, name string, data []byte) (*Answers, error)
	Fleet(ctx context.Context) (*Fleet, error)
	// Send sends to one member, by its rank or ID.
	Send(ctx context.Context, to string, data []byte) (*Sent, error)
	// Query asks all members, and waits for their answers until ctx ends.
	Query(ctx context.Context, name string, data []byte) (*Answers, error)
	// Copy sends a file to every member, and reports from time to time, in this goroutine.
	// The result tells what has become of it also after an error.
	Copy(ctx context.Context, u Upload, report func(transfer.Progress)) (transfer.Result, error)
	Members() (*Members, error)
	Status() (*Status, error)
	Views() (*Views, error)
	Tree() (*Tree, error)
	// Ready returns nil while the agent is a member of a group with a quorum, and has the keys,
	// locks, shards and retained messages of the group.
	Ready() error
	// Messages are those of the group, and those that this agent has sent.
	Messages() *retention.Log
	// Last asks other agents for the last message of a topic from before this agent's time.
	Last(ctx context.Context, topic string) (retention.Message, bool)
	// Events are those of the group. The topic of each is its name, and its data an [Event].
	Events() *retention.Log
	// Metrics serves metrics in the format of Prometheus, among them how often the API has refused
	// something, for each of [RefusalReasons].
	Metrics(refused func(reason string) uint64) http.Handler
}

// MemberRef names a member.
type MemberRef struct {
	Rank int    `json:"rank"`
	ID   string `json:"id"`
}

// Receipt is the reply to a broadcast.
type Receipt struct {
	View uint64 `json:"view"`
	// Stable says that every member has the message that was one when it was sent. Members
	// are those, and there are none otherwise. Joined are the members that have joined since.
	Stable  bool        `json:"stable"`
	Members []MemberRef `json:"members"`
	Joined  []MemberRef `json:"joined,omitempty"`
	// Zones counts the zones that are known, if the message goes to all of them. Stable and Members
	// are about the agent's own zone then.
	Zones int `json:"zones,omitempty"`
}

// Sent is the reply to a message for one member.
type Sent struct {
	View uint64    `json:"view"`
	To   MemberRef `json:"to"`
}

// Payload is the bytes of a message. JSON has no bytes: what is not UTF-8 is in base64.
type Payload struct {
	Data     string `json:"data"`
	Encoding string `json:"encoding,omitempty"`
}

// NewPayload encodes bytes.
func NewPayload(b []byte) Payload {
	if utf8.Valid(b) {
		return Payload{Data: string(b)}
	}
	return Payload{base64.StdEncoding.EncodeToString(b), "base64"}
}

// Bytes decodes the bytes.
func (p Payload) Bytes() ([]byte, error) {
	switch p.Encoding {
	case "":
		return []byte(p.Data), nil
	case "base64":
		return base64.StdEncoding.DecodeString(p.Data)
	}
	return nil, fmt.Errorf("encoding %q is not known", p.Encoding)
}

// Answers is the reply to a query.
type Answers struct {
	Name string `json:"name"`
	View uint64 `json:"view"`
	// Answers are those of the members, in order of rank. Unanswered are the members that
	// have not answered in time, or died before.
	Answers    []Answer     `json:"answers"`
	Unanswered []Unanswered `json:"unanswered"`
	// UnansweredZones are those of which nothing is known, in a query of the fleet.
	UnansweredZones []UnansweredZone `json:"unanswered_zones,omitempty"`
}

// Answer is what a member has answered.
type Answer struct {
	// Zone is the member's, in a query of the fleet.
	Zone string `json:"zone,omitempty"`
	MemberRef
	Payload
	// Error is why the member has no answer.
	Error   string  `json:"error,omitempty"`
	Seconds float64 `json:"seconds"`
}

// Unanswered is a member that has not answered.
type Unanswered struct {
	Zone string `json:"zone,omitempty"`
	MemberRef
	Reason string `json:"reason"`
}

// UnansweredZone is a zone that has not answered.
type UnansweredZone struct {
	Zone   string `json:"zone"`
	Reason string `json:"reason"`
}

// Message is a message as a server-sent event has it. One that was sent to the fleet has the
// zone of its sender, whose rank is -1.
type Message struct {
	Topic  string    `json:"topic"`
	Zone   string    `json:"zone,omitempty"`
	From   MemberRef `json:"from"`
	View   uint64    `json:"view"`
	Time   time.Time `json:"time"`
	Direct bool      `json:"direct,omitempty"`
	// Headers are the pairs of its header, with which it was sent.
	Headers map[string]string `json:"headers,omitempty"`
	Payload
}

// Gap is an event: messages are missing between the one before and the next, because the
// agent was not a member for a while, and other agents do not have them any more. Count is how
// many; 0: that is not known.
type Gap struct {
	Count  uint64    `json:"count,omitempty"`
	Reason string    `json:"reason"`
	Time   time.Time `json:"time"`
}

// The names of events.
const (
	EventMessage = "message"
	EventMissed  = "missed" // its data is a [retention.Missed]
	EventGap     = "gap"
)

// Members is the members of a view.
type Members struct {
	View    uint64   `json:"view"`
	Slots   int      `json:"slots"`
	Self    int      `json:"self"`   // the rank of this agent
	Leader  int      `json:"leader"` // the rank of the member that coordinates view changes
	Members []Member `json:"members"`
}

// The states of a member.
const (
	Alive     = "alive"
	Suspected = "suspected"
)

// Member is a member as this agent sees it.
type Member struct {
	MemberRef
	Address       string `json:"address"`
	FailureDomain string `json:"failure_domain,omitempty"`
	Incarnation   uint64 `json:"incarnation"`
	Meta          string `json:"meta,omitempty"`
	// Observer says that the member does not count for the quorum.
	Observer bool   `json:"observer,omitempty"`
	State    string `json:"state"`
	// Since is when this agent has seen the member join. It is zero if that was before its
	// own time.
	Since time.Time `json:"since,omitzero"`
	// SuspectedSince and Cause are there in the state suspected.
	SuspectedSince time.Time `json:"suspected_since,omitzero"`
	Cause          string    `json:"cause,omitempty"`
}

// Status is what an agent knows of its group.
type Status struct {
	pleach.Status
	Agent AgentStatus `json:"agent"`
}

// AgentStatus is what an agent knows of itself.
type AgentStatus struct {
	// Zone is the agent's, if it is in a fleet.
	Zone    string    `json:"zone,omitempty"`
	Version string    `json:"version"`
	Began   time.Time `json:"began"`
	// Retained counts the messages that subscribers can still get, and RetainedBytes
	// their bytes.
	Retained      int `json:"retained"`
	RetainedBytes int `json:"retained_bytes"`
	// Ready says what /readyz does, and NotReady why not.
	Ready    bool   `json:"ready"`
	NotReady string `json:"not_ready,omitempty"`
	// KeysBegun is the view in which keys and locks began empty because no member of the group
	// had them; 0: they began with the group.
	KeysBegun uint64 `json:"keys_begun,omitempty"`
	// Warnings are what an operator should know.
	Warnings []Warning `json:"warnings"`
	// LogError is why the messages are not saved for a restart, if they should be.
	LogError string `json:"log_error,omitempty"`
}

// The kinds of warnings.
const (
	WarnCertificate = "certificate" // it expires, or has expired
	WarnDisk        = "disk"        // it is full, or nearly so
	WarnFlapping    = "flapping"    // a member goes and comes back
	WarnStuck       = "stuck"       // the agent does not process the messages that it receives
	WarnKeys        = "keys"        // keys and locks began empty, because no member had them
)

// WarningKinds are all of them.
var WarningKinds = []string{WarnCertificate, WarnDisk, WarnFlapping, WarnKeys, WarnStuck}

// Warning is what an operator should know, and what to do.
type Warning struct {
	Kind  string    `json:"kind"`
	Text  string    `json:"text"`
	Next  string    `json:"next"`
	Since time.Time `json:"since"`
}

// Views is the last views of an agent, the current one last.
type Views struct {
	Views []pleach.ViewChange `json:"views"`
}

// Tree is the tree along which the broadcasts of this agent travel, as far as the agent knows:
// a member that is down for one other member is bypassed by that one alone.
type Tree struct {
	View uint64 `json:"view"`
	Root int    `json:"root"` // the rank of this agent
	// Edges lead to all members but the root, in order of rank.
	Edges []TreeEdge `json:"edges"`
}

// TreeEdge says which member sends to another one.
type TreeEdge struct {
	Rank   int `json:"rank"`
	Parent int `json:"parent"`
	// Avoided says that the member is suspected or stalled: those below it are fed by its
	// parent.
	Avoided bool `json:"avoided,omitempty"`
}

// Error is the reply to a request that fails.
type Error struct {
	Error string `json:"error"`
	// Unanswered are the members that may not have the message, if it is not known to be
	// stable in time.
	Unanswered []int `json:"unanswered,omitempty"`
	// Version is that of a key which does not have the one that the request names; 0: the key is
	// not there, or the request is not about one.
	Version uint64 `json:"version,omitempty"`
}
