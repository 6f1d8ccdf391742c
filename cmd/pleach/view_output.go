package main

import (
	"fmt"
	"strings"

	"github.com/pleach-go/pleach"
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
	Incarnation uint64 `json:"incarnation"`
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

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// viewTable writes a view for people: a line for each member, then the ring.
func viewTable(v pleach.View) string {
	identity, address, domain := len("identity"), len("address"), len("domain")
	for _, m := range v.Members {
		identity, address, domain = max(identity, len(printable(m.ID))), max(address, len(m.Address)), max(domain, len(printable(m.FailureDomain)))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", viewTitle(v))
	line := func(rank, i, a, d, incarnation string) {
		text := fmt.Sprintf("%5s  %-*s  %-*s  %-*s  %s", rank, identity, i, address, a, domain, d, incarnation)
		b.WriteString(text + "\n")
	}
	line("rank", "identity", "address", "domain", "incarnation")
	for _, m := range v.Members {
		line(fmt.Sprint(m.Rank), printable(m.ID), printable(m.Address), printable(m.FailureDomain), fmt.Sprint(m.Incarnation))
	}
	b.WriteString(ringText(v))
	return b.String()
}

// Ranks of the ring per row and per group, as pleach tree has them.
const (
	ringRow   = 32
	ringGroup = 8
)

// ringText shows the holes: ● has a member, ○ is a hole.
func ringText(v pleach.View) string {
	var b strings.Builder
	b.WriteString("\nring")
	members := v.Members
	for rank := range v.Slots {
		switch {
		case rank%ringRow == 0:
			fmt.Fprintf(&b, "\n%5d ", rank)
		case rank%ringGroup == 0:
			b.WriteString(" ")
		}
		if len(members) > 0 && members[0].Rank == rank {
			b.WriteString(" ●")
			members = members[1:]
		} else {
			b.WriteString(" ○")
		}
	}
	return b.String() + "\n"
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

// printable makes sure that what others have sent does nothing to a terminal.
func printable(text string) string {
	quoted := fmt.Sprintf("%+q", text)
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\uFFFD' }) {
		return quoted
	}
	return text
}
