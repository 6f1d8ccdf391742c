package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/pleach-go/pleach/agent/retention"
	"github.com/pleach-go/pleach/agent/rights"
)

// The events of a group: members that have joined, left on their own request, are gone for
// another reason, or tell something else about themselves; the quorum; and keys and locks that began
// empty, because no member had them.
const (
	EventJoin           = "member-join"
	EventLeave          = "member-leave"
	EventFailed         = "member-failed"
	EventUpdate         = "member-update"
	EventQuorumLost     = "quorum-lost"
	EventQuorumRegained = "quorum-regained"
	EventKeysEmpty      = "keys-empty"
)

// Event is what has happened to a group, as this agent has seen it.
type Event struct {
	Event string    `json:"event"`
	Time  time.Time `json:"time"`
	View  uint64    `json:"view"`
	// Reason says why the quorum is lost, or why keys and locks began empty.
	Reason string `json:"reason,omitempty"`
	// Members are all that the event happened to with one view, in order of rank.
	Members []EventMember `json:"members"`
}

// EventMember is a member in an event.
type EventMember struct {
	MemberRef
	Address string `json:"address"`
	Meta    string `json:"meta,omitempty"`
	// Cause is why the member is in the event. By has the ranks that have found out, and
	// Detail is what an own detector has.
	Cause  string `json:"cause"`
	By     []int  `json:"by,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// events streams the events of the group, or the audit log.
func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Query().Get("audit") == "true" {
		if err := s.check(&route{right: rights.Operate}, callerOf(r), r); err != nil {
			return err
		}
		return s.stream(w, r, s.audit.events, retention.Filter{})
	}
	return s.stream(w, r, s.agent.Events(), retention.Filter{})
}

// eventData is the data of an event of the group, which is JSON already.
func eventData(m *retention.Message) any { return json.RawMessage(m.Data) }
