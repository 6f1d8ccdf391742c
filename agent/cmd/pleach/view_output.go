package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/cli"
)

// viewJSON is a view as --json writes it.
type viewJSON struct {
	View    uint64       `json:"view"`
	Version int          `json:"version"` // of the protocol
	Slots   int          `json:"slots"`
	Members []memberJSON `json:"members"`
	Holes   []int        `json:"holes"`
	// NoQuorum is there while too few members are reachable.
	NoQuorum *quorumJSON `json:"no_quorum,omitempty"`
}

type quorumJSON struct {
	Reachable   int   `json:"reachable"`
	Needed      int   `json:"needed"`
	Unreachable []int `json:"unreachable"`
}

type memberJSON struct {
	Rank        int    `json:"rank"`
	Identity    string `json:"identity"`
	Address     string `json:"address"`
	Domain      string `json:"domain,omitempty"`
	Incarnation uint64 `json:"incarnation"` // the view that has admitted it
	Version     int    `json:"version"`     // the highest protocol version that it speaks
	Observer    bool   `json:"observer,omitempty"`
}

func newViewJSON(v pleach.View) viewJSON {
	j := viewJSON{View: v.Number, Version: v.Version, Slots: v.Slots, Members: membersJSON(v.Members()), Holes: holes(v)}
	if lost, ok := errors.AsType[*pleach.QuorumError](v.Err); ok {
		j.NoQuorum = &quorumJSON{lost.Reachable, lost.Needed, lost.Unreachable}
	}
	return j
}

func membersJSON(members []pleach.Member) []memberJSON {
	list := make([]memberJSON, len(members))
	for i, m := range members {
		list[i] = memberJSON{m.Rank, m.ID, m.Address, m.FailureDomain, m.Incarnation, m.Version, m.Observer}
	}
	return list
}

// quorumText says which quorum a view lacks; it is empty if none.
func quorumText(err error) string {
	if lost, ok := errors.AsType[*pleach.QuorumError](err); ok {
		return fmt.Sprintf("no quorum: %d of %d reachable, %d needed", lost.Reachable, lost.Members, lost.Needed)
	}
	return ""
}

// holes are the ranks without a member.
func holes(v pleach.View) []int {
	ranks := []int{}
	next := 0
	for _, m := range v.Members() { // in order of rank
		for ; next < m.Rank; next++ {
			ranks = append(ranks, next)
		}
		next = m.Rank + 1
	}
	for ; next < v.Slots; next++ {
		ranks = append(ranks, next)
	}
	return ranks
}

// viewTitle says which view it is, and of how many.
func viewTitle(v pleach.View) string {
	title := fmt.Sprintf("view %d: %s", v.Number, cli.Count(v.Size(), "member"))
	if n := v.Size() - len(v.Voters()); n > 0 {
		title += ", of which " + cli.Count(n, "observer")
	}
	if n := len(holes(v)); n > 0 {
		title += ", " + cli.Count(n, "hole")
	}
	newest := 0
	for _, m := range v.Members() {
		newest = max(newest, m.Version)
	}
	if text := versionText(v.Version, newest); text != "" {
		title += "; " + text
	}
	if text := quorumText(v.Err); text != "" {
		title += "; " + text
	}
	return title
}

// versionText says which protocol version a group has, if some members speak a higher one.
func versionText(version, newest int) string {
	if version >= newest {
		return ""
	}
	return fmt.Sprintf("protocol version %d, and members speak up to %d", version, newest)
}

// viewTable writes a view for people: a line for each member, then the ring, where ●
// has a member, ✗ has one that cannot be reached and ○ is a hole.
func viewTable(v pleach.View) string {
	rows := [][]string{{" rank", "identity", "address", "domain", "since view"}}
	sign := make(map[int]string)
	for _, m := range v.Members() {
		row := []string{
			fmt.Sprintf("%5d", m.Rank), cli.Printable(m.ID), cli.Printable(m.Address),
			cli.Printable(m.FailureDomain), fmt.Sprint(m.Incarnation),
		}
		if m.Observer {
			row = append(row, "observer")
		}
		rows = append(rows, row)
		sign[m.Rank] = "●"
	}
	if lost, ok := errors.AsType[*pleach.QuorumError](v.Err); ok {
		for _, rank := range lost.Unreachable {
			sign[rank] = "✗"
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", viewTitle(v))
	writeColumns(&b, rows)
	b.WriteString("\n" + cli.RingText(v.Slots, 5, func(rank int) string {
		return cmp.Or(sign[rank], "○")
	}))
	return b.String()
}

// viewChange says what is new in a view, on one line.
func viewChange(before, now pleach.View) string {
	was := make(map[int]pleach.Member, before.Size())
	for _, m := range before.Members() {
		was[m.Rank] = m
	}
	var came, went []string
	for _, m := range now.Members() {
		old, there := was[m.Rank]
		delete(was, m.Rank)
		if !there || old.Incarnation != m.Incarnation {
			came = append(came, fmt.Sprintf("+%d (%s)", m.Rank, cli.Printable(m.ID)))
		}
	}
	for _, m := range before.Members() {
		if _, gone := was[m.Rank]; gone {
			went = append(went, fmt.Sprintf("-%d (%s)", m.Rank, cli.Printable(m.ID)))
		}
	}
	title := viewTitle(now)
	if now.Number == before.Number && before.Err != nil && now.Err == nil {
		title += "; quorum regained"
	}
	return strings.Join(append([]string{title}, append(went, came...)...), " ")
}
