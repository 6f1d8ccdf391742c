package pleach

// Settings that must be alike at all members are compared when processes meet; package control
// has the rules. The longest message is the exception: members may differ in what they can
// receive, and each sends only what all can receive.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/internal/base/logsuppress"
	"github.com/pleach-go/pleach/internal/driver/admission"
	"github.com/pleach-go/pleach/internal/driver/client"
	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/lifecycle"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// SettingError means that this process has another value than a member, or than a process that
// wants to begin a group with it, for a setting that must be the same. It wraps [ErrRefused].
type SettingError struct {
	// Setting is the name of the setting in [Config], or in Config.Agree. Ours is its value at
	// this process, and Theirs that of Member, an ID or an address.
	Setting, Ours, Theirs, Member string
	// Err, if not nil, is why Join has stopped waiting for the other process to change.
	Err error
}

func (e *SettingError) Error() string {
	d := control.Difference{Setting: e.Setting, Ours: e.Ours, Theirs: e.Theirs, ID: e.Member}
	if e.Err != nil {
		return fmt.Sprintf("pleach: %v: %v", &d, e.Err)
	}
	return fmt.Sprintf("pleach: %v", &d)
}

// Unwrap returns [ErrRefused] and Err.
func (e *SettingError) Unwrap() []error {
	if e.Err != nil {
		return []error{ErrRefused, e.Err}
	}
	return []error{ErrRefused}
}

// MessageSizeError means that a message is longer than a member can receive. Calls that send
// return it. It ends the membership of a process that has received such a message all the
// same, from a member of an older version or in the moment in which a group begins.
type MessageSizeError struct {
	// Size is the length of the message, or as much of it as is known. Max is the longest
	// message that the member with an ID can receive, including the name of the topic.
	Size, Max int
	ID        string
	// From is the rank of the sender of a message that this process has received, or −1.
	From int
}

func (e *MessageSizeError) Error() string {
	if e.From >= 0 {
		return fmt.Sprintf("pleach: a message of %d bytes from rank %d is too long: %q can receive %d (Config.Limits.MaxMessage)", e.Size, e.From, e.ID, e.Max)
	}
	return fmt.Sprintf("pleach: a message of %d bytes is too long: %q can receive %d (Config.Limits.MaxMessage)", e.Size,
		e.ID, e.Max)
}

// maxAgree bounds Config.Agree in bytes.
const maxAgree = 1 << 10

func agreeBytes(agree map[string]string) (n int) {
	for name, value := range agree {
		n += len(name) + len(value)
	}
	return n
}

// defaultMaxMessage is Limits.MaxMessage if that is zero.
const defaultMaxMessage = 1 << 30

// settingsOf returns the settings that must be the same at all members.
func settingsOf(c *Config) control.Settings {
	state, times := "not set", heartbeatTimes(c)
	if c.State != nil {
		state = "set"
	}
	overflow := "Block"
	if c.Limits.Overflow == Drop {
		overflow = "Drop"
	}
	s := control.Settings{
		{Name: "AllowMinority", Value: strconv.FormatBool(c.AllowMinority)},
		{Name: "Limits.Overflow", Value: overflow},
		{Name: "Network.Shape", Value: fmt.Sprint(c.Network.Shape)},
		{Name: "State", Value: state},
		{Name: control.HeartbeatInterval, Value: time.Duration(times.Interval).String()},
		{Name: control.SuspicionTimeout, Value: time.Duration(times.Timeout).String()},
		{Name: control.MaxMessage, Value: strconv.Itoa(cmp.Or(c.Limits.MaxMessage, defaultMaxMessage))},
	}
	if c.Arbiter != nil { // missing otherwise: see [control.Settings.Compare]
		s = append(s, control.Setting{Name: control.Arbiter, Value: "set"})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Agree)) {
		s = append(s, control.Setting{Name: "Agree." + name, Value: c.Agree[name]})
	}
	return s
}

// asSettingError returns the error of an attempt to join as programs know it.
func asSettingError(err error) error {
	var d *control.Difference
	if !errors.As(err, &d) {
		return err
	}
	e := &SettingError{Setting: d.Setting, Ours: d.Ours, Theirs: d.Theirs, Member: d.ID}
	for _, ended := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, ended) {
			e.Err = ended
		}
	}
	return e
}

// messageLimit is the longest message that this member sends.
type messageLimit struct {
	own   int
	group atomic.Pointer[groupLimit]
}

// groupLimit is the longest message that all members can receive, as far as is known, and the ID
// of one that can receive no longer one.
type groupLimit struct {
	most int
	id   string
}

// MaxMessage returns the longest message, in bytes, that all members can receive: the lowest
// Config.Limits.MaxMessage. Broadcast and Send return a [*MessageSizeError] for a longer one. It
// rises automatically when the members that can receive less are gone.
func (g *Group) MaxMessage() int { return g.session().agreed.limit.group.Load().most }

// agreed is what the members have to agree on: their settings, and the longest message.
type agreed struct {
	*core
	client    *client.Client
	elsewhere *lifecycle.Elsewhere // used within node.Do
	refusals  *logsuppress.Foreign
	limit     messageLimit
}

// initLimit takes what the member has told that let this process join.
func (a *agreed) initLimit(s *initialState) {
	a.limit.own = cmp.Or(a.config.Limits.MaxMessage, defaultMaxMessage)
	limit := groupLimit{a.limit.own, a.self.Identity}
	if s.sends > 0 && s.sends < limit.most {
		limit = groupLimit{s.sends, s.sendsFor}
	}
	a.limit.group.Store(&limit)
}

// tooLong returns an error if not all members can receive a message of a size.
func (a *agreed) tooLong(size int) error {
	if limit := a.limit.group.Load(); size > limit.most {
		return &MessageSizeError{Size: size, Max: limit.most, ID: limit.id, From: -1}
	}
	return nil
}

// endTooLong ends the membership of a process that has received what it cannot take, within
// node.Do.
func (a *agreed) endTooLong() {
	if root, size, ok := a.stream.TooLong(); ok && a.Err() == nil {
		err := &MessageSizeError{Size: size, Max: a.limit.own, ID: a.self.Identity, From: int(root)}
		a.log.Error("leaving: a message is longer than this process can receive", "from", root, "bytes", size,
			"most", a.limit.own)
		a.end(err)
	}
}

// settings are those of this member, with what it sends.
func (a *agreed) settings() control.Settings {
	limit := a.limit.group.Load()
	return append(settingsOf(&a.config), control.Setting{
		Name:  control.GroupMaxMessage,
		Value: fmt.Sprintf("%d %s", limit.most, limit.id),
	})
}

// answerSettings answers a process that compares its settings with those of this member.
func (a *agreed) answerSettings(r *control.Compare) []byte {
	ours := a.settings()
	if d := ours.Compare(r.Settings, r.From.ID); d != nil {
		if repeated, changed := a.refusals.Changed(admission.HostOf(r.From.Address), errSettings); changed {
			a.log.Warn("a process has other settings, and must not join", "id", r.From.ID, "address", r.From.Address, "cause", d,
				"repeated", repeated)
		}
	}
	return control.Accept(ours.Encode(nil))
}

var errSettings = errors.New("other settings")

// askSettings asks a member for its settings.
func (a *agreed) askSettings(m *membership.Member) (control.Settings, error) {
	ctx, cancel := context.WithTimeout(a.life, reachTimeout)
	defer cancel()
	var address string
	_ = a.node.Do(func(protocol.Time) { address = a.elsewhere.Address(m) })
	body, err := a.client.Ask(ctx, address, control.Compare{
		From: control.Contact{ID: a.self.Identity, Address: a.self.Address}, Settings: a.settings(),
	})
	if err != nil {
		return nil, err
	}
	return control.DecodeSettings(body)
}

// settingsInterval is how often members are asked whose settings are unknown.
const settingsInterval = time.Second

// compareSettings compares the settings of this member with those of the lowest rank, if it has
// not joined by a member that did: it was started together with others, or has its place from
// its DataDir. It ends the membership if they differ.
func (a *agreed) compareSettings() {
	for {
		lowest := a.view.Load().Members.At(0)
		if lowest.Rank == a.self.Rank {
			return
		}
		theirs, err := a.askSettings(lowest)
		if err == nil {
			if d := a.settings().Compare(theirs, lowest.Identity); d != nil {
				a.log.Error("leaving: other settings", "member", lowest.Identity, "cause", d)
				a.end(asSettingError(d))
			}
			return
		}
		if errors.Is(err, ErrRefused) {
			return // of an older build
		}
		select {
		case <-time.After(settingsInterval):
		case <-a.life.Done():
			return
		}
	}
}

// raiseLimit follows what the members can receive, while some of them can receive less than this
// process: when the last one of these has gone, this process sends longer messages.
func (a *agreed) raiseLimit() {
	known := make(map[membershipKey]int)
	for a.life.Err() == nil && a.limit.group.Load().most < a.limit.own {
		changed := a.changed.Wait()
		wait := time.NewTimer(time.Hour)
		if !a.learnLimits(known) {
			wait.Reset(settingsInterval)
		}
		select {
		case <-changed:
		case <-wait.C:
		case <-a.life.Done():
		}
		wait.Stop()
	}
}

// membershipKey names one incarnation of a member.
type membershipKey struct {
	rank        protocol.Rank
	incarnation uint64
}

// learnLimits asks the members that are not known yet, and sets the limit if all are. It reports
// whether all are.
func (a *agreed) learnLimits(known map[membershipKey]int) bool {
	v := a.view.Load()
	limit := groupLimit{a.limit.own, a.self.Identity}
	for _, m := range v.Members.All() {
		key := membershipKey{m.Rank, m.Incarnation}
		most, ok := known[key]
		if m.Rank == a.self.Rank {
			continue
		}
		if !ok {
			theirs, err := a.askSettings(m)
			if err != nil && !errors.Is(err, ErrRefused) {
				return false
			}
			most, ok = theirs.Receives()
			if !ok {
				most = limit.most // unknown: it is of an older build
			}
			known[key] = most
		}
		if most < limit.most {
			limit = groupLimit{most, m.Identity}
		}
	}
	if before := a.limit.group.Swap(&limit); before.most != limit.most {
		a.log.Info("longest message of the group", "bytes", limit.most, "member", limit.id, "before", before.most)
	}
	return true
}
