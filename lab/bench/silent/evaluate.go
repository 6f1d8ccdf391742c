package silent

import (
	"slices"
	"time"

	"github.com/pleach-go/pleach/lab/bench"
)

// evaluate compares what live members have received before some were stopped and after.
func evaluate(c *Config, system string, stopped int64, reports map[int]report) Result {
	r := Result{System: system, Members: c.Members, Silent: c.Silent, Size: c.Size}
	view := viewWithout(c, stopped, reports)
	if view > 0 {
		r.ViewMS = bench.Millis(time.Duration(view - stopped))
	}
	until := view
	if until == 0 {
		until = stopped + int64(c.After)
	}
	if c.Interval == 0 {
		evaluateRate(c, &r, stopped, until, reports)
	} else {
		evaluateTimes(c, &r, stopped, until, reports)
	}
	return r
}

// viewWithout returns when the last live member had a view without the silent ones, or 0.
func viewWithout(c *Config, stopped int64, reports map[int]report) (last int64) {
	for _, rank := range c.live() {
		i := slices.IndexFunc(reports[rank].Views, func(s seen) bool {
			return s.At > stopped && s.Members <= c.Members-len(c.Silent)
		})
		if i < 0 {
			return 0
		}
		last = max(last, reports[rank].Views[i].At)
	}
	return last
}

// evaluateTimes evaluates messages that were sent at a pace.
func evaluateTimes(c *Config, r *Result, stopped, until int64, reports map[int]report) {
	var before, after []time.Duration
	root := reports[0]
	sentBefore := 0
	for number, sent := range root.Sent {
		took, complete := slowest(c, number, reports)
		switch {
		case sent+int64(c.Interval) < stopped: // the one before the stop may meet it on its way
			sentBefore++
			if complete {
				before = append(before, took)
			}
		case sent > stopped && sent < until:
			r.Sent++
			if complete {
				after = append(after, took)
			} else {
				r.Incomplete++
			}
		}
	}
	if len(after) > 0 {
		r.FirstMS = bench.Millis(after[0])
	}
	slices.Sort(before)
	slices.Sort(after)
	r.BeforeMS = bench.Millis(bench.Percentile(before, 50))
	r.MedianMS = bench.Millis(bench.Percentile(after, 50))
	r.WorstMS = bench.Millis(bench.Percentile(after, 100))
	var marked, rest uint64
	for _, rank := range c.live() {
		n := reports[rank].Received
		marked, rest = marked+n[1]-n[0], rest+n[2]-n[1]
	}
	perMember := func(received uint64, broadcasts int) float64 {
		return bench.Round(float64(received)/float64(len(c.live())*max(broadcasts, 1)), 2)
	}
	r.MessagesBefore = perMember(marked, sentBefore+1)
	r.MessagesAfter = perMember(rest, len(root.Sent)-sentBefore-1)
}

// slowest returns how long a message took to the last live member, unless one lacks it.
func slowest(c *Config, number int, reports map[int]report) (took time.Duration, complete bool) {
	for _, rank := range c.live() {
		times := reports[rank].Took
		if number >= len(times) || times[number] < 0 {
			return 0, false
		}
		took = max(took, time.Duration(times[number]))
	}
	return took, true
}

// evaluateRate evaluates messages that were sent at full rate. The first half before the
// stop is left out: windows grow.
func evaluateRate(c *Config, r *Result, stopped, until int64, reports map[int]report) {
	rate := func(from, to int64) float64 {
		return bench.Round(float64(received(c, reports, to)-received(c, reports, from))/time.Duration(to-from).Seconds(), 0)
	}
	r.RateBefore = rate(stopped-int64(c.Before)/2, stopped)
	r.RateAfter = rate(stopped, until)
	sent := reports[0].Next
	for _, rank := range c.live() {
		r.Lost = max(r.Lost, sent-min(reports[rank].Count, sent))
	}
}

// received returns how many messages every live member had received at a time.
func received(c *Config, reports map[int]report, at int64) uint64 {
	least := ^uint64(0)
	for _, rank := range c.live() {
		count := uint64(0)
		for i, n := range reports[rank].Buckets {
			if reports[rank].Started+int64(i+1)*int64(bucket) <= at {
				count += n
			}
		}
		least = min(least, count)
	}
	return least
}
