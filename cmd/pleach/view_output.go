package main

import (
	"fmt"
	"strings"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/draw"
)

// viewJSON is a view as --json writes it.
type viewJSON struct {
	View    uint64       `json:"view"`
	Slots   int          `json:"slots"`
	Members []memberJSON `json:"members"`
	Holes   []int        `json:"holes"`
}

type memberJSON struct {
	Rank        int    `json:"rank"`
	Identity    string `json:"identity"`
	Address     string `json:"address"`
	Domain      string `json:"domain,omitempty"`
	Incarnation uint64 `json:"incarnation"` // the view that has admitted it
}

func newViewJSON(v pleach.View) viewJSON {
	j := viewJSON{View: v.Number, Slots: v.Slots, Members: []memberJSON{}, Holes: holes(v)}
	for _, m := range v.Members {
		j.Members = append(j.Members, memberJSON{m.Rank, m.ID, m.Address, m.FailureDomain, m.Incarnation})
	}
	return j
}

// holes are the ranks without a member.
func holes(v pleach.View) []int {
	ranks := []int{}
	next := 0
	for _, m := range v.Members { // in order of rank
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
	title := fmt.Sprintf("view %d: %s", v.Number, count(len(v.Members), "member"))
	if n := len(holes(v)); n > 0 {
		title += ", " + count(n, "hole")
	}
	return title
}

// viewTable writes a view for people: a line for each member, then the ring, where ●
// has a member and ○ is a hole.
func viewTable(v pleach.View) string {
	rows := [][]string{{" rank", "identity", "address", "domain", "since view"}}
	occupied := make(map[int]bool)
	for _, m := range v.Members {
		rows = append(rows, []string{fmt.Sprintf("%5d", m.Rank), printable(m.ID), printable(m.Address), printable(m.FailureDomain), fmt.Sprint(m.Incarnation)})
		occupied[m.Rank] = true
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", viewTitle(v))
	writeColumns(&b, rows)
	b.WriteString("\n" + draw.RingText(v.Slots, 5, func(rank int) string {
		if occupied[rank] {
			return "●"
		}
		return "○"
	}))
	return b.String()
}

// viewChange says what is new in a view, on one line.
func viewChange(before, now pleach.View) string {
	was := make(map[int]pleach.Member, len(before.Members))
	for _, m := range before.Members {
		was[m.Rank] = m
	}
	var came, went []string
	for _, m := range now.Members {
		old, there := was[m.Rank]
		delete(was, m.Rank)
		if !there || old.Incarnation != m.Incarnation {
			came = append(came, fmt.Sprintf("+%d (%s)", m.Rank, printable(m.ID)))
		}
	}
	for _, m := range before.Members {
		if _, gone := was[m.Rank]; gone {
			went = append(went, fmt.Sprintf("-%d (%s)", m.Rank, printable(m.ID)))
		}
	}
	return strings.Join(append([]string{viewTitle(now)}, append(went, came...)...), " ")
}
