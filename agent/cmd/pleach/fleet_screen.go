package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/fleet"
)

// The screen of pleach status --fleet: a line for each zone, and the links between them, all
// as a table in a small fleet, and those that need attention in a large one.

// Limits of the screen. A link is late if its lead has heard nothing for so long: zones send
// summaries every five seconds.
const (
	tableZones = 8
	screenLate = 12 * time.Second
	screenLag  = 1000 // messages
	worstLinks = 12
)

// fleetText is the whole screen.
func fleetText(f *api.Fleet) string {
	var b strings.Builder
	members, silent := 0, 0
	for i := range f.Zones {
		members += f.Zones[i].Members
		if f.Zones[i].Error != "" {
			silent++
		}
	}
	fmt.Fprintf(&b, "fleet %s, seen from zone %s: %s, %s", cli.Printable(f.Name), cli.Printable(f.Zone),
		cli.Count(len(f.Zones), "zone"), cli.Count(members, "member"))
	if silent > 0 {
		fmt.Fprintf(&b, ", %s not reachable", cli.Count(silent, "zone"))
	}
	b.WriteString("\n\n")
	writeZones(&b, f)
	if len(f.Zones) > 1 {
		writeLinks(&b, f)
	}
	return b.String()
}

// zoneSign has the signs of members: this zone, one that answers, one with failures, and one
// that is not reachable.
func zoneSign(f *api.Fleet, z *api.Zone) string {
	switch {
	case z.Error != "":
		return signSuspect
	case !z.Healthy && z.Seconds >= 0:
		return signLags
	case z.Zone == f.Zone:
		return signSelf
	}
	return signAlive
}

func writeZones(b *strings.Builder, f *api.Fleet) {
	rows := [][]string{{"  zone", "members", "view", "told", "lead", "delegates"}}
	for i := range f.Zones {
		z := &f.Zones[i]
		lead, delegates := "-", []string{}
		for _, d := range z.Delegates {
			delegates = append(delegates, cli.Printable(d.ID))
			if d.Lead {
				lead = cli.Printable(d.ID)
			}
		}
		text := strings.Join(delegates, ", ")
		switch {
		case z.Error != "":
			text = "not reachable: " + cli.Printable(z.Error)
		case !z.Healthy && z.Seconds >= 0:
			text += " (it suspects members, or has no quorum: see pleach status there)"
		}
		rows = append(rows, []string{
			zoneSign(f, z) + " " + cli.Printable(z.Zone), fmt.Sprint(z.Members), fmt.Sprint(z.View), toldText(z), lead, text,
		})
	}
	writeColumns(b, rows)
}

// toldText says how old the summary of a zone is.
func toldText(z *api.Zone) string {
	switch {
	case z.Seconds < 0:
		return "never"
	case z.Seconds == 0:
		return "now"
	}
	return age(time.Duration(z.Seconds*float64(time.Second))) + " ago"
}

// writeLinks writes the links, as a table from zone to zone if they fit.
func writeLinks(b *strings.Builder, f *api.Fleet) {
	if len(f.Zones) > tableZones {
		writeWorstLinks(b, f)
		return
	}
	b.WriteString("\nlag and last contact from zone to zone\n\n")
	head := []string{"  from"}
	for i := range f.Zones {
		head = append(head, "to "+cli.Printable(f.Zones[i].Zone))
	}
	rows := [][]string{head}
	for i := range f.Zones {
		from := &f.Zones[i]
		row := []string{"  " + cli.Printable(from.Zone)}
		for j := range f.Zones {
			row = append(row, linkText(from, f.Zones[j].Zone))
		}
		rows = append(rows, row)
	}
	writeColumns(b, rows)
}

func linkText(from *api.Zone, to string) string {
	if from.Zone == to {
		return "·"
	}
	i := slices.IndexFunc(from.Links, func(l fleet.Link) bool { return l.Zone == to })
	if i < 0 {
		return "?" // its lead was not heard
	}
	l := &from.Links[i]
	text := fmt.Sprintf("%d, %s", l.Lag, heardText(l))
	if !l.Connected {
		text += " CUT"
	}
	return text
}

func heardText(l *fleet.Link) string {
	if l.Heard < 0 {
		return "never"
	}
	return age(l.Heard)
}

// writeWorstLinks counts the links, and lists those that need attention.
func writeWorstLinks(b *strings.Builder, f *api.Fleet) {
	type pair struct {
		from string
		fleet.Link
	}
	var bad []pair
	all := 0
	for i := range f.Zones {
		for _, l := range f.Zones[i].Links {
			all++
			if !l.Connected || l.Lag > screenLag || l.Heard < 0 || l.Heard > screenLate {
				bad = append(bad, pair{f.Zones[i].Zone, l})
			}
		}
	}
	slices.SortFunc(bad, func(x, y pair) int { return cmp.Or(cmp.Compare(y.Heard, x.Heard), cmp.Compare(y.Lag, x.Lag)) })
	fmt.Fprintf(b, "\n%s between zones", cli.Count(all, "link"))
	if len(bad) == 0 {
		b.WriteString(": all up to date\n")
		return
	}
	fmt.Fprintf(b, ", %d need attention\n\n", len(bad))
	rows := [][]string{{"  from", "to", "lag", "last contact"}}
	for _, p := range bad[:min(len(bad), worstLinks)] {
		heard := heardText(&p.Link)
		if !p.Connected {
			heard += " CUT"
		}
		rows = append(rows, []string{"  " + cli.Printable(p.from), cli.Printable(p.Zone), fmt.Sprint(p.Lag), heard})
	}
	writeColumns(b, rows)
	if more := len(bad) - worstLinks; more > 0 {
		fmt.Fprintf(b, "  … %d more (--json has all)\n", more)
	}
}
