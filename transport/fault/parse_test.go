package fault_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/transport/fault"
)

// everything has each statement in each of its forms.
const everything = `drop 5%
drop 20% 3->7
drop 0.25% 3 7
duplicate 2%
reorder 5% within 3ms
reorder 5% within 3ms 1->2
delay 1ms jitter 2ms
delay 1ms 4 5
at 100ms cut 3 7
at 150ms cut 3->7
at 160ms cut
at 200ms partition 0-8 | 9-15
at 200ms partition 0-3 7 | 9 11-12 | 20
at 400ms heal
at 50ms freeze 5
at 250ms thaw 5
at 300ms kill 4
at 320ms reset 2
at 1m30s drop 0%
`

func TestScriptRoundTrips(t *testing.T) {
	script, err := fault.Parse(everything)
	if err != nil {
		t.Fatal(err)
	}
	if got := script.String(); got != everything {
		t.Errorf("got\n%s\nwant\n%s", got, everything)
	}
}

func TestParseReadsWhatIsMeant(t *testing.T) {
	script, err := fault.Parse(`
		# A comment, and a blank line.

		at 2s delay 1ms jitter 2ms 3->7   # and one behind
		partition 0-1|2
		at 0s cut 1 2`)
	if err != nil {
		t.Fatal(err)
	}
	want := fault.Script{
		{2 * time.Second, fault.Delay{time.Millisecond, 2 * time.Millisecond, fault.OneWay(3, 7)}},
		{0, fault.Partition{[][]fault.Range{{{0, 1}}, {{2, 2}}}}},
		{0, fault.Cut{fault.Between(1, 2)}},
	}
	if !reflect.DeepEqual(script, want) {
		t.Errorf("got %v, want %v", script, want)
	}
}

func TestParseErrorsHelp(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"explode 3", `line 1: got "explode", expected drop, duplicate, reorder, delay, cut, partition, heal, freeze, thaw, kill or reset`},
		{"heal\n\nat 5 heal", `line 3: got "5", expected a duration up to 24h0m0s, as 100ms`},
		{"at 25h heal", `line 1: got "25h", expected a duration up to 24h0m0s, as 100ms`},
		{"at 1ms", `line 1: got the end of the line, expected drop, duplicate, reorder, delay, cut, partition, heal, freeze, thaw, kill or reset`},
		{"drop 5", `line 1: got "5", expected a percentage from 0% to 100%, as 5%`},
		{"drop NaN%", `line 1: got "NaN%", expected a percentage from 0% to 100%, as 5%`},
		{"drop 101%", `line 1: got "101%", expected a percentage from 0% to 100%, as 5%`},
		{"drop 5% 3->", `line 1: got "3->", expected two ranks, as 3->7 for one direction or 3 7 for both`},
		{"cut 3", `line 1: got "3", expected two ranks, as 3->7 for one direction or 3 7 for both`},
		{"cut 3 3", `line 1: got "3 3", expected two ranks, as 3->7 for one direction or 3 7 for both`},
		{"cut 3 7 9", `line 1: got "9", expected the end of the line`},
		{"reorder 5% 3ms", `line 1: got "3ms", expected "within" and a duration`},
		{"freeze", `line 1: got the end of the line, expected a rank, as 3`},
		{"kill -1", `line 1: got "-1", expected a rank, as 3`},
		{"heal 3", `line 1: got "3", expected the end of the line`},
		{"partition", `line 1: got the end of the line, expected a group of ranks, as 0-3 7 9`},
		{"partition 0-3 |", `line 1: got the end of the line, expected a group of ranks, as 0-3 7 9`},
		{"partition | 3", `line 1: got "|", expected a group of ranks, as 0-3 7 9`},
		{"partition 3-0", `line 1: got "3-0", expected the smaller rank first`},
		{"partition 0-3 | 3-5", `line 1: got "3-5", expected ranks that were not named before, in 0-3`},
		{strings.Repeat("heal\n", 10_001), `line 10001: got "heal", expected at most 10000 statements`},
	} {
		_, err := fault.Parse(c.script)
		var parse *fault.ParseError
		if !errors.As(err, &parse) || err.Error() != "fault: "+c.want {
			t.Errorf("Parse(%.40q) = %v, want %s", c.script, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for line := range strings.Lines(everything) {
		f.Add(line)
	}
	f.Add(everything)
	f.Add("drop 1e-300% # x\r\n\tat 1.5h partition 1|2|3")
	f.Fuzz(func(t *testing.T, text string) {
		script, err := fault.Parse(text)
		if err != nil {
			return
		}
		again, err := fault.Parse(script.String())
		if err != nil {
			t.Fatalf("%q became %q: %v", text, script, err)
		}
		if !reflect.DeepEqual(again, script) {
			t.Fatalf("%q became %q", script, again)
		}
	})
}
