package control

// Settings that all members must have alike are compared when two processes meet: before a
// process joins, before candidates begin a group together, and after a process became a
// member in another way. A setting that only one side knows is not compared, so that builds
// with more settings, and builds without this request, can be members of one group.

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
)

// The settings that are not simply equal or different.
const (
	// MaxMessage is the longest message that a process can receive.
	MaxMessage = "Limits.MaxMessage"
	// GroupMaxMessage is the longest message that a member sends, and the ID of a member that
	// can receive no longer one. Candidates have none.
	GroupMaxMessage = "group's Limits.MaxMessage"
	// HeartbeatInterval is how often a process sends heartbeats. It must fit twice into
	// the SuspicionTimeout of others; that is 0 if silence is not suspected.
	HeartbeatInterval = "Detection.HeartbeatInterval"
	SuspicionTimeout  = "Detection.SuspicionTimeout"
	// Arbiter is only among the settings of processes that have one. A build that does not know
	// it has none.
	Arbiter = "Arbiter"
)

// Limits of settings. They keep a request below the limit of the transport.
const (
	MaxSettings     = 64
	MaxSettingBytes = 2048 // of all names and values
)

// Setting is the value of a setting.
type Setting struct{ Name, Value string }

// Settings are the settings of a process that others compare with theirs.
type Settings []Setting

// Difference is a setting that must be alike, and is not.
type Difference struct {
	// Setting is its name, Ours its value at this process, and Theirs that of the process
	// with the given ID.
	Setting, Ours, Theirs, ID string
}

func (e *Difference) Error() string {
	return fmt.Sprintf("%s is %s at this process and %s at %q: set it alike at all members", e.Setting, e.Ours,
		e.Theirs, e.ID)
}

// Get returns the value of a setting.
func (s Settings) Get(name string) (value string, ok bool) {
	i := slices.IndexFunc(s, func(o Setting) bool { return o.Name == name })
	if i < 0 {
		return "", false
	}
	return s[i].Value, true
}

// number returns the value of a setting that is a number, which may be followed by an ID.
func (s Settings) number(name string) (n int64, id string, ok bool) {
	value, ok := s.Get(name)
	digits, id, _ := strings.Cut(value, " ")
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, id, ok && err == nil
}

// Receives returns the longest message that a process can receive, if it says so.
func (s Settings) Receives() (int, bool) {
	n, _, ok := s.number(MaxMessage)
	return int(n), ok
}

// Sends returns the longest message that a member sends, and the ID of a member that can
// receive no longer one. It returns false if the process is not a member, or does not report it.
func (s Settings) Sends() (n int, id string, ok bool) {
	most, id, ok := s.number(GroupMaxMessage)
	return int(most), id, ok
}

// Compare returns the first setting in which another process, with an ID, must not differ
// from this one, or nil.
func (s Settings) Compare(theirs Settings, id string) *Difference {
	for _, ours := range s {
		value, known := theirs.Get(ours.Name)
		switch ours.Name {
		case MaxMessage, GroupMaxMessage, HeartbeatInterval, SuspicionTimeout:
		default:
			if known && value != ours.Value {
				return &Difference{ours.Name, ours.Value, value, id}
			}
		}
	}
	return cmp.Or(s.compareArbiters(theirs, id), s.compareLengths(theirs, id), s.compareTimes(theirs, id))
}

// compareArbiters finds a process that counts half of the voters otherwise than the other one.
func (s Settings) compareArbiters(theirs Settings, id string) *Difference {
	const none = "not set"
	ours, has := s.Get(Arbiter)
	other, have := theirs.Get(Arbiter)
	switch {
	case has == have || len(s) == 0 || len(theirs) == 0:
		return nil
	case has:
		return &Difference{Arbiter, ours, none, id}
	}
	return &Difference{Arbiter, none, other, id}
}

// compareLengths finds a process that cannot receive what the other one sends. Members may
// differ otherwise: in a rolling restart that raises MaxMessage, they send what all can
// receive. Candidates do not know what the others of their group can receive, and must have
// the same.
func (s Settings) compareLengths(theirs Settings, id string) *Difference {
	ours, ok1 := s.Receives()
	other, ok2 := theirs.Receives()
	if !ok1 || !ok2 {
		return nil
	}
	weSend, _, member := s.Sends()
	theySend, _, theyMember := theirs.Sends()
	switch {
	case theyMember && ours < theySend:
		return &Difference{MaxMessage, strconv.Itoa(ours), fmt.Sprintf("%d, which the group uses,", theySend), id}
	case member && other < weSend:
		return &Difference{MaxMessage, fmt.Sprintf("%d, which the group uses,", weSend), strconv.Itoa(other), id}
	case !member && !theyMember && ours != other:
		return &Difference{MaxMessage, strconv.Itoa(ours), strconv.Itoa(other), id}
	}
	return nil
}

// compareTimes finds a process that would suspect the other one between two heartbeats.
func (s Settings) compareTimes(theirs Settings, id string) *Difference {
	times := func(interval, timeout Settings) (i, t time.Duration, ok bool) {
		every, _ := interval.Get(HeartbeatInterval)
		after, _ := timeout.Get(SuspicionTimeout)
		i, err1 := time.ParseDuration(every)
		t, err2 := time.ParseDuration(after)
		return i, t, err1 == nil && err2 == nil && t > 0 && t < 2*i
	}
	if i, t, late := times(s, theirs); late {
		return &Difference{HeartbeatInterval, i.String(), fmt.Sprintf("with a SuspicionTimeout of %v", t), id}
	}
	if i, t, late := times(theirs, s); late {
		return &Difference{SuspicionTimeout, t.String(), fmt.Sprintf("with a HeartbeatInterval of %v", i), id}
	}
	return nil
}

// Check returns an error if there are too many settings, or too long ones.
func (s Settings) Check() error {
	bytes := 0
	for _, o := range s {
		bytes += len(o.Name) + len(o.Value)
	}
	if len(s) > MaxSettings || bytes > MaxSettingBytes {
		return fmt.Errorf("%d settings of %d bytes: at most %d of %d bytes", len(s), bytes, MaxSettings, MaxSettingBytes)
	}
	return nil
}

// Encode appends the settings to b.
func (s Settings) Encode(b []byte) []byte {
	b = wire.AppendUint32(b, uint32(len(s)))
	for _, o := range s {
		b = wire.AppendBytes(wire.AppendBytes(b, []byte(o.Name)), []byte(o.Value))
	}
	return b
}

// DecodeSettings decodes settings that Encode wrote.
func DecodeSettings(b []byte) (s Settings, err error) {
	d := wire.NewDecoder(b)
	for n := d.Uint32(); n > 0 && d.Err() == nil && len(s) <= MaxSettings; n-- {
		s = append(s, Setting{string(d.Bytes()), string(d.Bytes())})
	}
	return s, cmp.Or(s.Check(), d.Finish())
}
