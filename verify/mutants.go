package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A mutant is code that is wrong on purpose, in one place. A checker that does not find it
// would not find the same mistake of a person.
type mutant struct {
	name, file, old, new string
}

// mutants are all of them. Each old text occurs once in its file.
var mutants = []mutant{
	{"delivered-twice", "internal/stream/deliver.go", "\tdefault:\n\t\tm.inbox.push(", "\tdefault:\n\t\tif f.delivered%50 == 0 {\n\t\t\tm.inbox.push(&m.inbox.main, Message{Root: f.root, Data: message, View: m.view})\n\t\t}\n\t\tm.inbox.push("},
	{"dropped", "internal/stream/deliver.go", "case len(message) > m.config.MaxMessage:", "case len(message) > m.config.MaxMessage || f.delivered%200 == 7:"},
	{"cut-not-delivered", "internal/stream/view.go", "\t\t\tm.deliver(f, end.Next)\n", ""},
	{"flush-does-not-wait", "internal/stream/view.go", "if f := m.flowOf(end.MemberID); f != nil && f.next < end.Next {", "if f := m.flowOf(end.MemberID); f != nil && false {"},
	{"frozen-member-delivers", "internal/stream/receive.go", "\tif m.frozen {\n\t\tm.heldBytes += seg.size()\n\t\treturn\n\t}\n", ""},
	{"holes-are-skipped", "internal/stream/receive.go", "\tif number == f.next {\n\t\tif tree {", "\tif number >= f.next && len(f.ahead) == 0 {\n\t\tf.next = number\n\t\tif tree {"},
	{"ack-before-children", "internal/stream/stable.go", "if a.from[r] < a.wanted {", "if a.from[r] < a.wanted && f == nil {"},
	{"ack-before-segment", "internal/stream/stable.go", "if a.acked >= a.wanted || f.next < a.wanted || f.lostBefore(a.wanted) {", "if a.acked >= a.wanted {"},
	{"receipt-names-joiners", "stable.go", "if m.Incarnation <= sentIn || sentIn == 0 || g.config.Static {", "if true {"},
	{"minority-decides", "internal/membership/view.go", "return 2*n > v.Members.Len() || 2*n == v.Members.Len() && s.has(0)", "return 3*n >= v.Members.Len()"},
	{"gap-not-told", "rejoin.go", "&Gap{From: old.view.Load().Number, To: s.view.Number, Err: old.Err()}", "nil"},
	{"shard-no-lease-wait", "shard/internal/handoff/machine.go", "\t\treturn since + m.c.Lease\n", "\t\treturn since\n"},
	{"shard-lease-never-ends", "shard/internal/handoff/lease.go", "if until := sent + m.c.Lease/5*4; until > m.until {", "if until := sent + m.c.Lease*9; until > m.until {"},
	{"shard-holder-ignored", "shard/internal/handoff/machine.go", "\tcase part.holder.Rank != nobody:\n\t\treturn max(since, part.told) + m.c.Handoff + m.c.Lease\n", ""},
	{"shard-all-vouch", "shard/majority.go", "if current.Number != view || current.Err != nil || !s.machine.Vouches(s.now(), view) {", "if current.Number == 0 {"},
	{"shard-work-not-drained", "shard/serve.go", "if !o.draining || o.working > 0 || ", "if !o.draining || "},
	{"shard-serves-without-lease", "shard/internal/handoff/machine.go", "return part.token, part.state == held && now < m.until", "return part.token, part.state == held"},
	{"shard-old-token", "shard/internal/handoff/machine.go", "part.state, part.token = held, m.view\n", "part.state, part.token = held, m.self.Incarnation\n"},
	{"shard-map-forgets-joiners", "shard/internal/handoff/rendezvous.go", "\t\t\tfor _, i := range kept {\n\t\t\t\tbest.compare(members, i, p)\n\t\t\t}\n", ""},
	{"shard-view-skipped-keeps", "shard/internal/handoff/machine.go", "follows := view == m.view+1 && self == m.self", "follows := m.view > 0"},
}

// runMutants plants one mutant after the other in a copy of the code, and runs its members.
func runMutants(c config, root, only string) error {
	copied := filepath.Join(c.dir, "mutants")
	if err := errors.Join(os.RemoveAll(copied), os.MkdirAll(copied, 0o700)); err != nil {
		return err
	}
	archive := exec.Command("sh", "-c", `git -C "$1" archive HEAD | tar -x -C "$2"`, "sh", root, copied)
	if out, err := archive.CombinedOutput(); err != nil {
		return fmt.Errorf("verify: copy the code: %w: %s", err, out)
	}
	var survived []string
	for _, m := range mutants {
		if only != "" && m.name != only {
			continue
		}
		began := time.Now()
		by, err := m.run(c, copied)
		if err != nil {
			return fmt.Errorf("verify: mutant %s: %w", m.name, err)
		}
		if by == "" {
			survived = append(survived, m.name)
			by = "SURVIVED"
		}
		fmt.Printf("%-28s %s (%v)\n", m.name, by, time.Since(began).Round(time.Second))
	}
	if len(survived) > 0 {
		return fmt.Errorf("verify: not caught: %s", strings.Join(survived, ", "))
	}
	return nil
}

// run runs members with one mutant, and returns by which rule it was caught.
func (m *mutant) run(c config, copied string) (by string, err error) {
	path := filepath.Join(copied, m.file)
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		return "", fmt.Errorf("its text occurs %d times in %s", n, m.file)
	}
	defer func() { err = errors.Join(err, os.WriteFile(path, source, 0o600)) }()
	if err := os.WriteFile(path, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600); err != nil {
		return "", err
	}
	c.program = filepath.Join(c.dir, "mutant-"+m.name)
	build := exec.Command("go", "build", "-o", c.program, ".")
	build.Dir, build.Env = filepath.Join(copied, "verify"), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w: %s", err, out)
	}
	defer os.Remove(c.program)
	_, err = c.run()
	var wrong *violationsError
	if errors.As(err, &wrong) {
		return wrong.violations[0].rule, os.RemoveAll(wrong.dir)
	}
	return "", err
}
