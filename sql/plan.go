package sql

import (
	"fmt"
	"regexp"
	"strings"
)

// Plan is what a job computes: one stage after the other.
type Plan struct{ Stages []Stage }

// Stage is a query that every task runs on the rows that it has, and where the result goes.
type Stage struct {
	// Name is the phase that the stage begins.
	Name string
	// Query is SQL: a SELECT without a semicolon.
	Query string
	// To is the exchange.
	To Exchange
}

// Exchange is where the result of a stage goes.
type Exchange struct {
	Kind Kind
	// Table is what later stages call the exchanged rows, with ToAll, ByHash and ByRange.
	Table string
	// Column is the key, with ByHash and ByRange.
	Column string
	// Dir is where the result of the job is written, with Write.
	Dir string
}

// Kind is the kind of an exchange.
type Kind int

// The kinds. The last stage of a plan has ToResult or Write, and no other stage has.
const (
	// ToAll gives all rows to all tasks.
	ToAll Kind = iota
	// ByHash gives each row to a task by a hash of its key: rows with equal keys meet.
	ByHash
	// ByRange gives each row to a task by its key, in order: the keys of a task are not
	// above those of the next one.
	ByRange
	// ToResult makes the rows the result of the job. The query is run once, over tables that
	// all tasks have.
	ToResult
	// Write writes the rows of each task to a Parquet file.
	Write
)

// String returns the exchange as in the text of a plan.
func (e Exchange) String() string {
	switch e.Kind {
	case ToAll:
		return e.Table + " to all"
	case ByHash:
		return fmt.Sprintf("%s by hash(%s)", e.Table, e.Column)
	case ByRange:
		return fmt.Sprintf("%s by range(%s)", e.Table, e.Column)
	case ToResult:
		return "result"
	default:
		return "write " + e.Dir
	}
}

// repartitions reports whether a task gets rows by the exchange that no other task has.
func (e Exchange) repartitions() bool { return e.Kind == ByHash || e.Kind == ByRange }

// last reports whether the exchange ends a plan.
func (e Exchange) last() bool { return e.Kind == ToResult || e.Kind == Write }

// holds reports whether a job needs [collective.Comm.Hold]: rows outlive their process only in
// the log of the exchange that brought them.
func (p *Plan) holds() bool {
	for _, s := range p.Stages {
		if s.To.repartitions() {
			return true
		}
	}
	return false
}

// String returns the text of the plan.
func (p *Plan) String() string {
	var b strings.Builder
	for _, s := range p.Stages {
		fmt.Fprintf(&b, "phase %s\n%s\n=> %v\n\n", s.Name, s.Query, s.To)
	}
	return b.String()
}

// PlanError says which line of a plan is wrong.
type PlanError struct {
	Line int // from 1
	Text string
}

func (e *PlanError) Error() string {
	return fmt.Sprintf("sql: line %d of the plan: %s", e.Line, e.Text)
}

var (
	phaseLine = regexp.MustCompile(`^phase ([a-z][a-z0-9_]*)$`)
	exchanges = []struct {
		pattern *regexp.Regexp
		make    func(m []string) Exchange
	}{
		{regexp.MustCompile(`^(\w+) to all$`), func(m []string) Exchange { return Exchange{Kind: ToAll, Table: m[1]} }},
		{
			regexp.MustCompile(`^(\w+) by hash\((\w+)\)$`),
			func(m []string) Exchange { return Exchange{Kind: ByHash, Table: m[1], Column: m[2]} },
		},
		{
			regexp.MustCompile(`^(\w+) by range\((\w+)\)$`),
			func(m []string) Exchange { return Exchange{Kind: ByRange, Table: m[1], Column: m[2]} },
		},
		{regexp.MustCompile(`^result$`), func([]string) Exchange { return Exchange{Kind: ToResult} }},
		{regexp.MustCompile(`^write (.+)$`), func(m []string) Exchange { return Exchange{Kind: Write, Dir: m[1]} }},
	}
)

// ParsePlan reads a plan. A stage is a line with its name, lines of SQL, and a line with
// the exchange:
//
//	phase filter
//	SELECT c_custkey FROM customer WHERE c_mktsegment = 'BUILDING'
//	=> building to all
//
// The exchanges are
//
//	=> TABLE to all
//	=> TABLE by hash(COLUMN)
//	=> TABLE by range(COLUMN)
//	=> result
//	=> write DIR
//
// Lines that begin with -- are comments. It returns a [*PlanError] for a line that is wrong.
func ParsePlan(text string) (*Plan, error) {
	p := &planParser{names: make(map[string]bool)}
	for i, line := range strings.Split(text, "\n") {
		p.line = i + 1
		if err := p.add(strings.TrimRight(line, " \t\r")); err != nil {
			return nil, err
		}
	}
	switch n := len(p.Stages); {
	case p.stage != nil:
		return nil, p.wrong("stage %s has no exchange: write a line that begins with =>", p.stage.Name)
	case n == 0:
		return nil, p.wrong("there is no stage")
	case !p.Stages[n-1].To.last():
		return nil, p.wrong("the last exchange is %v: end with result or write", p.Stages[n-1].To)
	}
	return &p.Plan, nil
}

type planParser struct {
	Plan
	line  int
	stage *Stage // that has no exchange yet, or nil
	sql   []string
	names map[string]bool // of stages and tables
}

func (p *planParser) wrong(format string, args ...any) error {
	return &PlanError{p.line, fmt.Sprintf(format, args...)}
}

func (p *planParser) add(line string) error {
	text := strings.TrimSpace(line)
	exchange, isExchange := strings.CutPrefix(text, "=>")
	phase := phaseLine.FindStringSubmatch(text)
	switch {
	case text == "" || strings.HasPrefix(text, "--"):
		return nil
	case phase != nil:
		return p.begin(phase[1])
	case p.stage == nil:
		return p.wrong("%q is in no stage: begin one with a line as phase NAME", text)
	case isExchange:
		return p.end(strings.TrimSpace(exchange))
	}
	p.sql = append(p.sql, line)
	return nil
}

func (p *planParser) begin(name string) error {
	n := len(p.Stages)
	switch {
	case p.stage != nil:
		return p.wrong("stage %s has no exchange: write a line that begins with =>", p.stage.Name)
	case n > 0 && p.Stages[n-1].To.last():
		return p.wrong("%v is the last exchange, but stage %s follows", p.Stages[n-1].To, name)
	}
	p.stage = &Stage{Name: name}
	return p.claim("phase "+name, "phase", name)
}

// claim returns an error if a name was used before.
func (p *planParser) claim(key, what, name string) error {
	if p.names[key] {
		return p.wrong("%s %s is there twice", what, name)
	}
	p.names[key] = true
	return nil
}

func (p *planParser) end(text string) error {
	s := *p.stage
	s.Query = strings.TrimSuffix(strings.Join(p.sql, "\n"), ";")
	if s.Query == "" {
		return p.wrong("stage %s has no query", s.Name)
	}
	for _, e := range exchanges {
		if m := e.pattern.FindStringSubmatch(text); m != nil {
			s.To = e.make(m)
			p.Stages, p.stage, p.sql = append(p.Stages, s), nil, nil
			if s.To.last() {
				return nil
			}
			return p.claim("table "+s.To.Table, "table", s.To.Table)
		}
	}
	return p.wrong("no exchange reads %q: write TABLE to all, TABLE by hash(COLUMN), TABLE by range(COLUMN), result, or write DIR", text)
}
