package main

import (
	"cmp"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"slices"

	"github.com/anishathalye/porcupine"
)

// around is how much of the histories a timeline shows before and after the first violation.
const around = int64(4e9)

// lane is a line of a timeline.
type lane struct {
	Name  string
	Boxes []box
}

// box is an event. Left and Width are in percent.
type box struct {
	Left, Width float64
	Kind, Text  string
}

// writeTimeline draws what happened around the first violation, as a page without scripts. A
// register that is wrong has a page of porcupine's next to it.
func writeTimeline(path string, seed uint64, histories []*history, faults []Event, violations []violation) error {
	slices.SortStableFunc(violations, func(a, b violation) int { return cmp.Compare(a.at, b.at) })
	from := violations[0].at - around
	place := func(e *Event, kind, text string) (b box, ok bool) {
		until := max(e.At, e.Until)
		if until < from || e.At > from+2*around {
			return b, false
		}
		percent := func(at int64) float64 { return min(max(float64(at-from)/float64(2*around)*100, 0), 100) }
		return box{percent(e.At), max(percent(until)-percent(e.At), 0.15), kind, text}, true
	}
	lanes := []lane{{Name: "nemesis"}}
	for i := range faults {
		if b, ok := place(&faults[i], "fault", fmt.Sprint(faults[i].Err, " ", faults[i].Hosts)); ok {
			lanes[0].Boxes = append(lanes[0].Boxes, b)
		}
	}
	for _, h := range histories {
		l := lane{Name: h.process}
		for i := range h.events {
			e := &h.events[i]
			if kind, text := describe(e); kind != "" {
				if b, ok := place(e, kind, text); ok {
					l.Boxes = append(l.Boxes, b)
				}
			}
		}
		if len(l.Boxes) > 0 {
			lanes = append(lanes, l)
		}
	}
	texts := make([]string, 0, len(violations))
	for _, v := range violations {
		texts = append(texts, v.rule+": "+v.text)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := page.Execute(f, map[string]any{"Seed": seed, "Violations": texts, "Lanes": lanes}); err != nil {
		return err
	}
	return writeRegisters(filepath.Dir(path), histories)
}

// writeRegisters draws the registers that are not linearizable.
func writeRegisters(dir string, histories []*history) error {
	c := &checker{histories: histories}
	for _, ops := range c.operations() {
		result, info := porcupine.CheckOperationsVerbose(register(), ops, undecidedAfter)
		if result == porcupine.Illegal {
			return porcupine.VisualizePath(register(), info, filepath.Join(dir, "register.html"))
		}
	}
	return nil
}

// describe returns how an event looks; an empty kind: not at all.
func describe(e *Event) (kind, text string) {
	switch e.Type {
	case evView:
		if e.Err != "" {
			return "lost", e.Err
		}
		return "view", fmt.Sprint("view ", e.View, " ", e.Members)
	case evServe:
		return "serve", fmt.Sprintf("partition %d, token %d, key %d, write %v", e.Partition, e.Token, e.Key, e.Write)
	case evHold:
		return "serve", fmt.Sprintf("lock %d, token %d", e.Key, e.Token)
	case evNotice:
		return "lost", e.Err
	}
	return "", ""
}

var page = template.Must(template.New("timeline").Parse(`<!doctype html><meta charset="utf-8"><title>seed {{.Seed}}</title>
<style>
body{font:13px sans-serif;margin:2em}.lane{position:relative;height:22px;border-bottom:1px solid #ddd}
.name{position:absolute;left:0;width:7em}.row{position:absolute;left:7em;right:0;top:2px;height:18px}
.row div{position:absolute;top:0;height:18px;opacity:.8}
.fault{background:#c33}.view{background:#27c}.serve{background:#2a6}.lost{background:#e90}
</style>
<h1>Seed {{.Seed}}</h1><p>4 s before and after the first violation. Red: faults. Blue: views. Green: partitions served, and locks held. Orange: no quorum, and notices. Point at a box for its text.</p>
<ul>{{range .Violations}}<li>{{.}}</li>{{end}}</ul>
{{range .Lanes}}<div class="lane"><span class="name">{{.Name}}</span><div class="row">{{range .Boxes}}<div class="{{.Kind}}" style="left:{{.Left}}%;width:{{.Width}}%" title="{{.Text}}"></div>{{end}}</div></div>
{{end}}`))
