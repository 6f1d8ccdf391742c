package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A mutant is code that is wrong on purpose, in one place. A checker that does not find it
// would not find the same mistake of a person.
type mutant struct {
	name, kind, file, old, new string // kind: of the rounds that it runs in
}

// mutants are all of them. Each old text occurs once in its file.
var mutants = []mutant{
	{
		"delivered-twice", disks, "internal/machine/stream/deliver.go", "\t\tnext.Lease = buffer.lease()\n",
		"\t\tif f.delivered%50 == 0 {\n\t\t\tm.inbox.push(&m.inbox.main, next)\n\t\t}\n\t\tnext.Lease = buffer.lease()\n",
	},
	{
		"dropped", disks, "internal/machine/stream/deliver.go", "if len(message) > m.config.MaxMessage {",
		"if len(message) > m.config.MaxMessage || f.delivered%200 == 7 {",
	},
	{"cut-not-delivered", disks, "internal/machine/stream/view.go", "\t\t\tm.deliver(f, end.Next)\n", ""},
	{
		"flush-does-not-wait", disks, "internal/machine/stream/view.go",
		"if f := m.flowOf(end.MemberID); f != nil && f.next < end.Next {",
		"if f := m.flowOf(end.MemberID); f != nil && false {",
	},
	{
		"frozen-member-delivers", disks, "internal/machine/stream/receive.go",
		"\tif m.frozen {\n\t\tm.heldBytes += seg.size()\n\t\treturn\n\t}\n", "",
	},
	{
		"holes-are-skipped", disks, "internal/machine/stream/receive.go", "\tif number == f.next {\n\t\tif tree {",
		"\tif number >= f.next && len(f.ahead) == 0 {\n\t\tf.next = number\n\t\tif tree {",
	},
	{
		"ack-before-children", disks, "internal/machine/stream/stable.go", "if a.from[r] < a.wanted {",
		"if a.from[r] < a.wanted && f == nil {",
	},
	{
		"ack-before-segment", disks, "internal/machine/stream/stable.go",
		"if a.acked >= a.wanted || f.next < a.wanted || m.frozen && f.frozenAt < a.wanted || f.lostBefore(a.wanted) {",
		"if a.acked >= a.wanted {",
	},
	{
		"receipt-names-joiners", disks, "stable.go", "if m.Incarnation <= sentIn || sentIn == 0 || p.config.Static {",
		"if true {",
	},
	{
		"receipt-of-one-membership", disks, "stable.go", "	if e.Memberships == nil {",
		"	if e.Memberships == nil || o.since == 0 {",
	},
	{
		"minority-decides", disks, "internal/machine/membership/voters.go",
		"return 2*n > e.count || !e.arbiter && 2*n == e.count && s.has(e.lowest)", "return 3*n >= e.count",
	},
	{
		"gap-not-told", disks, "rejoin.go", "&GapError{From: old.view.Load().Number, To: s.view.Number, Err: old.Err()}",
		"nil",
	},
	{"shard-work-not-drained", disks, "shard/serve.go", "if !o.draining || o.working > 0 || ", "if !o.draining || "},
	{
		"shard-serves-without-lease", disks, "internal/services/handoff/machine.go",
		"return part.token, part.state == held && now < m.until", "return part.token, part.state == held",
	},
	{
		"shard-old-token", disks, "internal/services/handoff/machine.go", "part.state, part.token = held, m.token()",
		"part.state, part.token = held, m.token()-m.view+m.self.Incarnation",
	},
	{
		"shard-token-begins-again", disks, "shard/config.go", "floor := max(c.TokenFloor(), mark.Floor())",
		"floor := uint64(0)",
	},
	{
		"shard-view-skipped-keeps", disks, "internal/services/handoff/machine.go",
		"follows := view == m.view+1 && self == m.self", "follows := m.view > 0",
	},
	{
		"state-of-the-lowest-rank", memory, "state.go", "number = min(o.OfferState(), lifecycle.HasState-1)",
		"number = min(o.OfferState(), 1)",
	},
	{
		"order-begins-again", agents, "internal/services/sequencer/joining.go",
		"	case j.knows:\n\t\tanswer.Body = []byte{1}\n", "	case j.knows:\n",
	},
	{
		"minority-does-not-doubt", disks, "internal/machine/membership/doubt.go", "	case m.live[asked] == nil && d.quiet:\n",
		"	case m.live[asked] == nil && d.quiet && m.view.Number == 0:\n",
	},
	{"order-not-safe", memory, "replicated/replica.go", "Safe: true}", "Safe: false}"},
	{
		"order-counts-one-ack-less", memory, "internal/services/sequencer/lead.go", "counts[(len(counts)-1)/2])",
		"counts[len(counts)-1])",
	},
	{
		"order-not-sent-again", memory, "internal/services/sequencer/machine.go",
		"	m.forwarded = 0\n	return m.deliver(m.numbered)", "	return m.deliver(m.numbered)",
	},
	{
		"reads-without-the-order", memory, "replicated/propose.go",
		"	_, err := r.propose(ctx, &proposal{read: f})\n	return err\n", "	f()\n	return nil\n",
	},
	{
		"joiner-without-results", memory, "internal/services/session/sessions.go", "s.results[seq] = d.Bytes()",
		"_, _ = seq, d.Bytes()",
	},
	{
		"lease-by-the-time-of-day", memory, "lease/table.go", "return time.Since(began) })",
		"return time.Now().Round(0).Sub(began.Round(0)) })",
	},
	{
		"lease-taken-over-early", memory, "internal/services/leases/table.go",
		"return since + ttl + Time(float64(ttl)*t.Drift) - now + 1", "return since + ttl/4*3 - now + 1",
	},
	{
		"lease-renewal-ignored", memory, "internal/services/leases/table.go", "(!held || same && e.Renewals == c.Renewals):",
		"(!held || same):",
	},
	{
		"lease-never-expires", memory, "lease/lease.go",
		"return h.life.Err() == nil && h.leases.table.now() < time.Duration(h.until.Load())", "return h.life.Err() == nil",
	},
	{
		"lease-token-begins-again", memory, "lease/prepare.go", "return max(l.config.TokenFloor(), l.table.floor())",
		"return 1",
	},
	{
		"lease-token-stays", memory, "internal/services/leases/table.go", "t.token = max(t.token+1, c.Floor)",
		"t.token = max(t.token, 1, c.Floor)",
	},
}

// runMutants builds members with one mutant after the other, and runs them.
func runMutants(c config, root, only string) error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	var survived []string
	for _, m := range mutants {
		if only != "" && !slices.Contains(strings.Split(only, ","), m.name) {
			continue
		}
		began := time.Now()
		by, err := m.run(c, root)
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
func (m *mutant) run(c config, root string) (by string, err error) {
	path, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		return "", fmt.Errorf("its text occurs %d times in %s", n, m.file)
	}
	changed := filepath.Join(c.dir, m.name+".go")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600); err != nil {
		return "", err
	}
	defer os.Remove(changed)
	c.kind, c.program = m.kind, filepath.Join(c.dir, "mutant-"+m.name)
	c.agent = c.program
	if replaced := map[string]string{path: changed}; m.kind == agents {
		err = buildAgent(root, c.agent, replaced)
	} else {
		err = buildMember(filepath.Join(root, "lab", "verify"), c.program, replaced)
	}
	if err != nil {
		return "", err
	}
	defer os.Remove(c.program)
	_, err = c.run()
	wrong, err := asViolations(err)
	if wrong != nil {
		return wrong.violations[0].rule, os.RemoveAll(wrong.dir)
	}
	return "", err
}
