package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/agent/config"
)

// What fits on one screen: so many members in the table, and so many events.
const (
	screenMembers = 16
	screenEvents  = 8
	screenNames   = 6
)

// statusScreen is a status for people.
type statusScreen struct {
	statusJSON
	all, color bool
	peers      map[int]pleach.PeerStatus
}

// text is the whole screen.
func (s *statusScreen) text() string {
	s.peers = make(map[int]pleach.PeerStatus)
	for _, p := range s.Status.Peers {
		s.peers[p.Rank] = p
	}
	var b strings.Builder
	s.writeTitle(&b)
	s.writeRing(&b)
	s.writeSuspects(&b)
	s.writeMembers(&b)
	s.writeEvents(&b)
	return b.String()
}

func (s *statusScreen) writeTitle(b *strings.Builder) {
	st := &s.Status
	if st.Group != "" {
		fmt.Fprintf(b, "group %s, ", cli.Printable(st.Group))
	}
	fmt.Fprintf(b, "view %d: %s", st.View, cli.Count(st.Members, "member"))
	if n := s.Members.Slots - len(s.Members.Members); n > 0 {
		fmt.Fprintf(b, ", %s", cli.Count(n, "hole"))
	}
	if n := len(st.Suspects); n > 0 {
		fmt.Fprintf(b, ", %d suspected", n)
	}
	quorum := "quorum"
	if !st.Quorum.OK {
		quorum = "NO QUORUM"
	}
	voters := ""
	if st.Quorum.Voters > 0 && st.Quorum.Voters < st.Members {
		voters = fmt.Sprintf(" of %d voters", st.Quorum.Voters)
	}
	fmt.Fprintf(b, "\n%s: %d%s reachable, %d needed\n", quorum, st.Quorum.Reachable, voters, st.Quorum.Needed)
	b.WriteString(s.arbiterLine() + s.nextStep())
	for _, w := range st.Agent.Warnings {
		b.WriteString(wrap("warning: "+cli.Printable(w.Text), "  ") + wrap("next: "+cli.Printable(w.Next), "  "))
	}
	if text := versionText(st.Version, st.NewestVersion); text != "" {
		fmt.Fprintf(b, "%s: see pleach raise-version\n", text)
	}
	fmt.Fprintf(b, "agent %s, rank %d, %s, up %s; %s retained\n", cli.Printable(st.ID), st.Rank,
		cli.Printable(st.Agent.Version),
		age(st.Time.Sub(st.Agent.Began)), cli.Count(st.Agent.Retained, "message"))
	if st.Agent.NotReady != "" {
		b.WriteString(wrap("not ready: "+cli.Printable(st.Agent.NotReady), "  "))
	}
	if st.Agent.KeysBegun > 0 {
		fmt.Fprintf(b, "keys and locks began empty in view %d: no member of the group had them\n", st.Agent.KeysBegun)
	}
	if st.Agent.LogError != "" {
		fmt.Fprintf(b, "messages are not saved for a restart: %s\n", cli.Printable(st.Agent.LogError))
	}
	if st.LastError != "" {
		b.WriteString(wrap(fmt.Sprintf("last error of the agent, %s ago: %s", age(st.Time.Sub(st.LastErrorAt)),
			cli.Printable(cli.ShellText(errors.New(st.LastError)))), "  "))
	}
}

// arbiterLine is the last answer of the arbiter. Without one, there is a line only if half of the voters may
// be left.
func (s *statusScreen) arbiterLine() string {
	q := &s.Status.Quorum
	a := &q.Arbiter
	ago := func(at time.Time) string { return age(s.Status.Time.Sub(at)) }
	text := ""
	switch a.State {
	case pleach.ArbiterNone:
		if q.Voters == 0 || q.Voters%2 == 1 {
			return ""
		}
		text = "none is configured"
	case pleach.ArbiterNotAsked:
		text = "not asked yet"
	case pleach.ArbiterGranted:
		text = fmt.Sprintf("granted view %d, %s ago", a.View, ago(a.Since))
	case pleach.ArbiterRefused:
		text = fmt.Sprintf("refused view %d, %s ago: it lets another side continue", a.View, ago(a.Since))
	case pleach.ArbiterUnavailable:
		text = fmt.Sprintf("no answer about view %d for %s, last call %s ago: %s", a.View,
			age(a.LastCall.Sub(a.Since)), ago(a.LastCall), cli.Printable(cli.ShellText(errors.New(a.Cause))))
	default:
		return "" // an agent of another version
	}
	return wrap("arbiter: "+text, "  ")
}

// nextStep says what an operator does when the quorum is lost, or "".
func (s *statusScreen) nextStep() string {
	st := &s.Status
	if st.Quorum.OK {
		return ""
	}
	var names []string
	suspects := slices.DeleteFunc(slices.Clone(st.Suspects), func(x pleach.Suspect) bool {
		return slices.ContainsFunc(s.Members.Members, func(m api.Member) bool { return m.Rank == x.Rank && m.Observer })
	})
	for i := range suspects[:min(len(suspects), screenNames)] {
		names = append(names, cli.Printable(suspects[i].ID))
	}
	if more := len(suspects) - screenNames; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	missing, arbiter := st.Quorum.Needed-st.Quorum.Reachable, ""
	if st.Quorum.Arbiter.State == pleach.ArbiterUnavailable {
		arbiter = "make the arbiter available again; or "
	}
	return wrap(fmt.Sprintf(
		"next: "+arbiter+"start %d of %s again, or repair the connection to them (pleach status there shows the cause); if they are lost for good: pleach force-view",
		max(missing, 1), cmp.Or(strings.Join(names, ", "), "the others")), "  ")
}

// The signs of members. They differ without color, too.
const (
	signAlive   = "●"
	signSelf    = "◎"
	signSuspect = "?"
	signLags    = "~"
	signHole    = "○"
)

func (s *statusScreen) sign(m *api.Member) string {
	switch p := s.peers[m.Rank]; {
	case m.State == api.Suspected:
		return signSuspect
	case p.Stalled || lags(&p):
		return signLags
	case m.Rank == s.Members.Self:
		return signSelf
	}
	return signAlive
}

// lagShown is the lag from which on a member counts as lagging: a few segments are under way
// in any group that sends.
const lagShown = 64

func lags(p *pleach.PeerStatus) bool { return p.Lag >= lagShown }

var signColors = map[string]int{signSuspect: 31, signLags: 33, signSelf: 36, signAlive: 32}

func (s *statusScreen) writeRing(b *strings.Builder) {
	signs := make(map[int]string)
	for i := range s.Members.Members {
		signs[s.Members.Members[i].Rank] = s.sign(&s.Members.Members[i])
	}
	b.WriteString("\n" + cli.RingText(s.Members.Slots, 5, func(rank int) string {
		sign := cmp.Or(signs[rank], signHole)
		if color := signColors[sign]; s.color && color != 0 {
			return fmt.Sprintf("\x1b[%dm%s\x1b[0m", color, sign)
		}
		return sign
	}))
}

// writeSuspects says why members are suspected, and which members have found it out.
func (s *statusScreen) writeSuspects(b *strings.Builder) {
	suspects := s.Status.Suspects
	if len(suspects) == 0 {
		return
	}
	b.WriteString("\nsuspected\n")
	for i := range suspects[:min(len(suspects), screenNames)] {
		x := &suspects[i]
		line := fmt.Sprintf("  %s (rank %d) for %s", cli.Printable(x.ID), x.Rank, age(s.Status.Time.Sub(x.Since)))
		if len(x.By) > 0 {
			line += ", by rank " + ranges(x.By, ", ", screenNames)
		}
		b.WriteString(wrap(line+": "+cli.Printable(x.Cause), "      "))
	}
	if more := len(suspects) - screenNames; more > 0 {
		fmt.Fprintf(b, "  … %d more\n", more)
	}
}

// screenWidth is how long a line may be.
const screenWidth = 100

// wrap breaks a line that is too long between words, and indents what follows. Nothing is left
// out: the end of a cause often says most.
func wrap(line, indent string) string {
	var b strings.Builder
	for runes := []rune(strings.TrimRight(line, " ")); ; runes = append([]rune(indent), runes...) {
		if len(runes) <= screenWidth {
			return b.String() + string(runes) + "\n"
		}
		at := screenWidth
		for i := screenWidth; i > screenWidth/2; i-- {
			if runes[i] == ' ' {
				at = i
				break
			}
		}
		b.WriteString(string(runes[:at]) + "\n")
		runes = []rune(strings.TrimLeft(string(runes[at:]), " "))
	}
}

// writeMembers lists the members that need attention first, and the others if they fit.
func (s *statusScreen) writeMembers(b *strings.Builder) {
	members := slices.Clone(s.Members.Members)
	urgent := func(m *api.Member) int {
		return map[string]int{signSuspect: 2, signLags: 1}[s.sign(m)]
	}
	slices.SortStableFunc(members, func(x, y api.Member) int { return urgent(&y) - urgent(&x) })
	shown := len(members)
	if !s.all && shown > screenMembers {
		shown = slices.IndexFunc(members, func(m api.Member) bool { return urgent(&m) == 0 })
		if shown < 0 || shown > screenMembers {
			shown = screenMembers
		}
	}
	rows := [][]string{{"   rank", "member", "state", "age", "lag", "domain", "version", "address"}}
	for i := range members[:shown] {
		rows = append(rows, s.row(&members[i]))
	}
	if shown > 0 {
		b.WriteString("\n")
		writeColumns(b, rows)
	}
	if more := members[shown:]; len(more) > 0 {
		fmt.Fprintf(b, "\n%d more (--all lists them): failure domains %s; versions %s\n", len(more),
			tally(more, func(m *api.Member) string { return m.FailureDomain }),
			tally(more, func(m *api.Member) string { return config.Tags(m.Meta)[config.VersionTag] }))
	}
}

// row is a member in the table.
func (s *statusScreen) row(m *api.Member) []string {
	p, known := s.peers[m.Rank]
	state := m.State
	if m.Observer {
		state = "observer"
	}
	switch {
	case m.State == api.Suspected:
		state = m.State + " " + age(s.Status.Time.Sub(m.SuspectedSince))
	case p.Stalled:
		state = "stalled"
	case lags(&p):
		state = "lags"
	}
	lag := "-"
	if known && p.Connected && lags(&p) {
		lag = fmt.Sprint(p.Lag)
	}
	since := "-" // it was there before this agent
	if !m.Since.IsZero() {
		since = age(s.Status.Time.Sub(m.Since))
	}
	return []string{
		fmt.Sprintf("%s %5d", s.sign(m), m.Rank), cli.Printable(m.ID), state, since, lag,
		cmp.Or(cli.Printable(m.FailureDomain), "-"), cmp.Or(cli.Printable(config.Tags(m.Meta)[config.VersionTag]), "-"),
		cli.Printable(m.Address),
	}
}

// tally counts members by a name, the most frequent first.
func tally(members []api.Member, name func(*api.Member) string) string {
	counts := make(map[string]int)
	for i := range members {
		counts[cmp.Or(cli.Printable(name(&members[i])), "-")]++
	}
	names := slices.SortedFunc(maps.Keys(counts), func(x, y string) int {
		return cmp.Or(counts[y]-counts[x], strings.Compare(x, y))
	})
	var parts []string
	for i, name := range names {
		if i == screenNames {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}

// writeEvents lists the last changes of the members, the latest first.
func (s *statusScreen) writeEvents(b *strings.Builder) {
	var lines []string
	for _, v := range slices.Backward(s.Status.History) {
		for _, c := range v.Changes {
			lines = append(lines, wrap(fmt.Sprintf("  %s  view %d  %s", v.Time.Local().Format(time.TimeOnly), v.Number,
				cli.Printable(c.String())), "      "))
		}
		if v.Omitted > 0 {
			lines = append(lines, fmt.Sprintf("  %s  view %d  %d more\n", v.Time.Local().Format(time.TimeOnly), v.Number,
				v.Omitted))
		}
	}
	if len(lines) == 0 {
		return
	}
	b.WriteString("\nlast changes\n" + strings.Join(lines[:min(len(lines), screenEvents)], ""))
}

// age is a time as people read it: 1.2s, 45s, 3m20s, 5h10m, 12d.
func age(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
