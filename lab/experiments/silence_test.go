package experiments

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/lab/chart"
	"github.com/pleach-go/pleach/protocol"
)

const silenceGolden = "testdata/silence.csv"

// The leads that are compared, in microseconds: offers at once as in the papers' overlapped
// correction, fixed ones, the measured one, and one so long that there is only the tree.
var silenceLeads = []string{"eager", "100", "300", "1000", "3000", "10000", "30000", "measured", "never"}

// silenceRow runs broadcasts without a death, and others past a silent inner member.
func silenceRow(size, processors int, lead string) ([]string, error) {
	o := Overload{
		Size: size, Processors: processors, Overhead: 10_000, Latency: 20_000, Timers: SharedTimers,
		Broadcasts: 40, Warmup: 40, Pause: 20_000_000, Seed: 1,
	}
	switch lead {
	case "eager":
		o.Lead = 1
	case "never":
		o.Lead = 10_000_000_000
	case "measured":
	default:
		microseconds, err := strconv.Atoi(lead)
		if err != nil {
			return nil, err
		}
		o.Lead = 1000 * protocol.Time(microseconds)
	}
	row := []string{strconv.Itoa(size), strconv.Itoa(processors), lead}
	healthy, err := o.Run()
	if err != nil {
		return nil, err
	}
	row = append(row, fmt.Sprintf("%.2f", healthy.Messages), fmt.Sprint(median(healthy.Times)/1000))
	if lead == "never" {
		return append(row, "", "", ""), nil
	}
	o.Silent = []protocol.Rank{1}
	past, err := o.Run()
	if err != nil {
		return nil, err
	}
	worst := past.Times[len(past.Times)-1]
	return append(row, fmt.Sprint(past.First/1000), fmt.Sprint(median(past.Times)/1000), fmt.Sprint(worst/1000)), nil
}

func median(times []protocol.Time) protocol.Time { return times[len(times)/2] }

// What a lead costs without a death, and what it costs past a silent inner member, against
// the golden file.
func TestSilence(t *testing.T) {
	if testutil.RaceEnabled {
		t.Skip("minutes with the race detector, which has seen these machines elsewhere")
	}
	rows := [][]string{{"members", "processors", "lead", "messages", "median", "first", "median past", "worst past"}}
	sizes := []int{16, 128}
	if testutil.Full.On() || testutil.UpdateGolden.On() {
		sizes = append(sizes, 1024) // three quarters of a minute
	}
	for _, size := range sizes {
		for _, processors := range []int{2, size} {
			for _, lead := range silenceLeads {
				row, err := silenceRow(size, processors, lead)
				if err != nil {
					t.Fatalf("%d members on %d processors, lead %s: %v", size, processors, lead, err)
				}
				rows = append(rows, row)
			}
		}
	}
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(strings.Join(row, ",") + "\n")
	}
	if testutil.UpdateGolden.On() {
		if err := os.WriteFile(silenceGolden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := os.ReadFile(silenceGolden)
	if err != nil || !strings.HasPrefix(string(recorded), b.String()) ||
		testutil.Full.On() && string(recorded) != b.String() {
		t.Errorf("%v; now:\n%s", err, b.String())
	}
}

// The measured lead costs little without a death, and a silent inner member costs little,
// whether members share two processors or have one each. No fixed lead does both.
func TestMeasuredLeadIsBothCheapAndQuick(t *testing.T) {
	rows := goldenRows(t, silenceGolden)[1:]
	value := func(size, processors, lead string, column int) float64 {
		i := slices.IndexFunc(rows,
			func(row []string) bool { return slices.Equal(row[:3], []string{size, processors, lead}) })
		v, err := strconv.ParseFloat(rows[i][column], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, size := range []string{"16", "128", "1024"} {
		for _, processors := range []string{"2", size} {
			tree := value(size, processors, "never", 4)
			slower, first, messages := value(size, processors, "measured", 4)/tree, value(size, processors, "measured", 5)/tree,
				value(size, processors, "measured", 3)
			t.Logf("%s members on %s processors: %.2f of the tree alone, %.2f messages, first past a silent member %.2f", size,
				processors, slower, messages, first)
			if slower > 1.25 || first > 5 || messages > 2.1 {
				t.Errorf("%s members on %s processors: %.2f of the tree alone, %.2f messages, first past a silent member %.2f",
					size, processors, slower, messages, first)
			}
		}
	}
}

// The pictures of docs/research/overload.md are drawn from the golden file: what each lead costs
// without a death, and past a silent inner member. Dotted lines are the measured lead.
func TestSilenceChart(t *testing.T) {
	const eager = 0.03 // where "at once" stands on a logarithmic axis
	leads := chart.Axis{
		Label: "lead of correction [ms]", Log: true,
		Ticks: append([]chart.Tick{{Value: eager, Label: "eager"}}, chart.At(0.1, 0.3, 1, 3, 10, 30)...),
	}
	cost := &chart.Chart{
		Name: "lead-cost", Title: "No member is dead, and all share two processors",
		X: leads, Y: chart.Axis{Label: "median [tree alone = 1]", From: 0, To: 2.2},
	}
	silence := &chart.Chart{
		Name: "silence", Title: "First message past a silent inner member",
		X: leads, Y: chart.Axis{Label: "time [tree alone = 1]", Log: true, Ticks: chart.At(1, 2, 5, 10, 20, 50, 100, 200,
			500), From: 1, To: 600},
	}
	for color, size := range []string{"16", "128", "1024"} {
		rows := slices.DeleteFunc(goldenRows(t, silenceGolden)[1:], func(row []string) bool {
			return row[0] != size ||
				row[1] != "2"
		})
		tree, _ := strconv.ParseFloat(rows[len(rows)-1][4], 64)
		for c, column := range map[*chart.Chart]int{cost: 4, silence: 5} {
			fixed := chart.Series{Name: size + " members", Kind: chart.Line, Color: color}
			measured := chart.Series{Name: size + " members, measured lead", Kind: chart.Rule, Color: color}
			for _, row := range rows[:len(rows)-1] {
				y, _ := strconv.ParseFloat(row[column], 64)
				microseconds, err := strconv.ParseFloat(row[2], 64)
				switch {
				case row[2] == "measured":
					measured.Points = []chart.Point{{X: eager, Y: y / tree}}
				case err != nil:
					fixed.Points = append(fixed.Points, chart.Point{X: eager, Y: y / tree})
				default:
					fixed.Points = append(fixed.Points, chart.Point{X: microseconds / 1000, Y: y / tree})
				}
			}
			c.Series = append(c.Series, fixed, measured)
		}
	}
	checkDrawn(t, cost, silenceGolden)
	checkDrawn(t, silence, silenceGolden)
}
