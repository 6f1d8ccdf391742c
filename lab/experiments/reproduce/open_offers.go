package reproduce

import (
	"fmt"

	"github.com/pleach-go/pleach/lab/chart"
	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// Lazy offers: correction that says what there is instead of sending it. The
// papers count messages, all of one length.

func openOffers() Experiment {
	return Experiment{
		Name: "open-offers", Paper: leftOpen,
		Title: "Correction that carries the message, and correction that offers it",
		About: "128 members, the very machines that processes run, over a simulated network: 10 µs of latency, 5 µs and a nanosecond a byte for each frame at either port. " +
			"One message; an inner node of its tree, another one in each run, has died just before, or none has. Correction carries the message whatever its length, or never, or, as is the default, up to 1 KiB.",
		Source: &Source{
			Name: "open-offers", Seed: 1, Tables: []string{"offers"},
			Cost: [sizes]float64{0.5, 2, 15}, measure: measureOffers,
		},
		charts: drawOffers, claims: judgeOffers,
	}
}

const (
	offersMembers = 128
	always, never = 1 << 20, 1
	byDefault     = 1 << 10
)

var (
	offersPayloads = []int{64, 256, 1024, 4096, 16384, 65536}
	offersRules    = []struct {
		inline int
		title  string
	}{{always, "carries"}, {never, "offers"}, {byDefault, "up to 1 KiB"}}
)

func measureOffers(j *job) (Data, error) {
	size := protocol.Rank(j.pick(16, offersMembers, offersMembers))
	runs := j.pick(1, 4, 31)
	t := newTable("inline", "payload", "dead", "time_us", "time_max_us", "bytes_per_member", "frames_per_member", "runs")
	all := float64(len(offersPayloads) * len(offersRules) * 2)
	for n, payload := range offersPayloads {
		for i, rule := range offersRules {
			for dead := range 2 {
				results := make([]experiments.OffersResult, runs)
				for run := range results {
					o := experiments.Offers{Size: size, Payload: payload, Inline: rule.inline, Latency: 10_000, Overhead: 5_000}
					if dead > 0 {
						o.Dies = protocol.Rank(1 + run) // below half of the ranks all have children
					}
					if err := j.ctx.Err(); err != nil {
						return nil, err
					}
					var err error
					results[run], err = o.Run()
					if err != nil {
						return nil, err
					}
				}
				time := logp.Distribute(results, func(r *experiments.OffersResult) float64 { return float64(r.Time) / 1000 })
				bytes := logp.Distribute(results,
					func(r *experiments.OffersResult) float64 { return float64(r.Bytes) / float64(size) })
				frames := logp.Distribute(results,
					func(r *experiments.OffersResult) float64 { return float64(r.Frames) / float64(size) })
				t.add(rule.inline, payload, dead, time.Mean, time.Max, bytes.Mean, frames.Mean, runs)
				j.done(float64((n*len(offersRules)+i)*2+dead+1) / all)
			}
		}
	}
	return Data{"offers": t}, nil
}

func drawOffers(d Data) []chart.Chart {
	charts := []chart.Chart{
		{
			Name: "open-offers-bytes", Title: "Bytes sent per member and message (128 members)",
			Y: chart.Axis{Label: "times the message, per member"},
		},
		{
			Name: "open-offers-time", Title: "Time until all have it, one inner node dead (128 members)",
			Y: chart.Axis{Label: "mean time [µs]", Log: true, Ticks: chart.At(200, 500, 1000, 2000, 5000, 10000)},
		},
	}
	for i := range charts {
		charts[i].X = chart.Axis{Label: "message [bytes]", Log: true, Ticks: chart.Powers(6, 16, 2)}
	}
	for i, rule := range offersRules {
		t := d["offers"].where("inline", rule.inline)
		bytes := t.where("dead", 0).points("payload", "bytes_per_member", "", "")
		for k := range bytes {
			bytes[k].Y /= bytes[k].X
		}
		charts[0].Series = append(charts[0].Series, chart.Series{Name: rule.title, Color: i, Points: bytes})
		charts[1].Series = append(charts[1].Series,
			chart.Series{Name: rule.title, Color: i, Points: t.where("dead", 1).points("payload", "time_us", "", "")})
		if rule.inline == byDefault {
			charts[1].Series = append(charts[1].Series, chart.Series{
				Name: "none dead", Kind: chart.Dashed, Color: chart.Black,
				Points: t.where("dead", 0).points("payload", "time_us", "", ""),
			})
		}
	}
	return charts
}

func judgeOffers(d Data) []Claim {
	t := d["offers"]
	at := func(inline, payload, dead int, column string) float64 {
		return t.where("inline", inline).where("payload", payload).where("dead", dead).number(column)
	}
	var claims []Claim
	for _, payload := range []int{256, 65536} {
		claims = append(claims, Claim{
			where: "Corrected Trees §4.1",
			Claim: fmt.Sprintf("correction of %s bytes that carries them, against one that offers them",
				figure(float64(payload), 0)), Stated: "only messages are counted",
			Measured: fmt.Sprintf(
				"%.2f against %.2f times the message sent per member; all have it after %s against %s µs with a dead inner node, %s and %s without",
				at(always, payload, 0, "bytes_per_member")/float64(payload),
				at(never, payload, 0, "bytes_per_member")/float64(payload),
				figure(at(always, payload, 1, "time_us"), 0), figure(at(never, payload, 1, "time_us"), 0),
				figure(at(always, payload, 0, "time_us"), 0), figure(at(never, payload, 0, "time_us"), 0)),
			Verdict: Answered, Runs: t.where("payload", payload).runs(),
		})
	}
	return claims
}
