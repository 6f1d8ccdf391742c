package sql_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/sql"
)

const somePlan = `-- a comment
phase one
SELECT a,
  b FROM t;
=> u to all

phase two
SELECT a FROM u
=> v by hash(a)

phase three
FROM v
=> w by range(a)

phase four
FROM w
=> result
`

func TestParsePlan(t *testing.T) {
	p, err := sql.ParsePlan(somePlan)
	if err != nil {
		t.Fatal(err)
	}
	want := []sql.Stage{
		{"one", "SELECT a,\n  b FROM t", sql.Exchange{Kind: sql.ToAll, Table: "u"}},
		{"two", "SELECT a FROM u", sql.Exchange{Kind: sql.ByHash, Table: "v", Column: "a"}},
		{"three", "FROM v", sql.Exchange{Kind: sql.ByRange, Table: "w", Column: "a"}},
		{"four", "FROM w", sql.Exchange{Kind: sql.ToResult}},
	}
	if len(p.Stages) != len(want) {
		t.Fatalf("%d stages, want %d", len(p.Stages), len(want))
	}
	for i, s := range p.Stages {
		if s != want[i] {
			t.Errorf("stage %d is %+v, want %+v", i, s, want[i])
		}
	}
	again, err := sql.ParsePlan(p.String())
	if err != nil || again.String() != p.String() {
		t.Errorf("the plan's text is read as %v, %v", again, err)
	}
}

func TestWrongPlans(t *testing.T) {
	for _, c := range []struct {
		text string
		line int
		says string
	}{
		{"", 1, "no stage"},
		{"SELECT 1", 1, "in no stage"},
		{"phase a\n=> write x", 2, "no query"},
		{"phase a\nFROM t\n=> nowhere", 3, "no exchange reads"},
		{"phase a\nFROM t", 2, "no exchange"},
		{"phase a\nFROM t\nphase b", 3, "no exchange"},
		{"phase a\nFROM t\n=> u to all", 3, "end with result or write"},
		{"phase a\nFROM t\n=> write x\nphase b", 4, "last exchange"},
		{"phase a\nFROM t\n=> u to all\nphase b\nFROM u\n=> u to all", 6, "twice"},
		{"phase a\nFROM t\n=> u to all\nphase a", 4, "twice"},
		{"phase a\nFROM t\n=> result of a", 3, "no exchange reads"},
	} {
		_, err := sql.ParsePlan(c.text)
		wrong, ok := errors.AsType[*sql.PlanError](err)
		if !ok || wrong.Line != c.line || !strings.Contains(wrong.Text, c.says) {
			t.Errorf("%q: %v, want line %d and %q", c.text, err, c.line, c.says)
		}
	}
}
