package scale

import (
	"slices"
	"time"

	"github.com/pleach-go/pleach/lab/bench"
)

// Result is what was measured at one size and with one number of kills. What does not
// depend on the kills is the same in all results of a size.
type Result struct {
	Members   int    `json:"members"`
	Transport string `json:"transport"`
	// Kills is how many members died at once.
	Kills int `json:"kills"`
	// StartMS is how long it took to start all members.
	StartMS float64 `json:"start_ms"`

	// What a member holds at rest, after some broadcasts. A connection counts at both
	// of its ends. IdleCPU is a member's share of one processor when nothing is sent but
	// heartbeats, in percent.
	HeapKB      float64 `json:"heap_kb_per_member"`
	StackKB     float64 `json:"stack_kb_per_member"`
	Goroutines  float64 `json:"goroutines_per_member"`
	Connections float64 `json:"connections_per_member"`
	IdleCPU     float64 `json:"idle_cpu_percent"`
	IdleFrames  float64 `json:"idle_frames_per_member_second"`

	// Broadcasts counts the rounds, and BroadcastsComplete those in which every member
	// got the message within a second. Times are of those only: until the last member
	// has it. Messages are the frames that a member receives for a broadcast, those of
	// an idle group not counted.
	Broadcasts         int     `json:"broadcasts"`
	BroadcastsComplete int     `json:"broadcasts_complete"`
	BroadcastP50       float64 `json:"broadcast_p50_us"`
	BroadcastP99       float64 `json:"broadcast_p99_us"`
	BareP50            float64 `json:"bare_p50_us"`
	BareP99            float64 `json:"bare_p99_us"`
	Messages           float64 `json:"messages_per_member"`
	CPU                float64 `json:"cpu_us_per_member"`
	BareCPU            float64 `json:"bare_cpu_us_per_member"`

	// Rounds counts how often so many members were killed, and Complete the rounds
	// after which every survivor's program had a view without them within ten seconds.
	// The others are of those only, and 0 if there are none: times from before the kill
	// until the last survivor's program has the view, what a survivor received and spent
	// meanwhile beyond what it does when idle, and the views it took, all on average.
	Rounds     int     `json:"rounds"`
	Complete   int     `json:"complete"`
	ViewP50    float64 `json:"view_p50_ms"`
	ViewP99    float64 `json:"view_p99_ms"`
	ViewFrames float64 `json:"view_frames_per_member"`
	ViewCPU    float64 `json:"view_cpu_us_per_member"`
	Views      float64 `json:"views"`
	// Evicted counts live members that the others removed from the view.
	Evicted int `json:"evicted"`

	// Joined members have joined at once, a tenth of the group, and JoinMS is until
	// all members have a view with all of them, which took so many views. They are 0
	// without TCP, and if the time was up first.
	Joined    int     `json:"joined"`
	JoinMS    float64 `json:"join_ms"`
	JoinViews int     `json:"join_views"`

	// OutOfFiles counts the members of this size that could not connect at times, because
	// this process may not open more files. What was measured is of that then.
	OutOfFiles int `json:"out_of_files"`
}

// kill is the outcome of one round.
type kill struct {
	complete    bool
	took        time.Duration
	frames, cpu float64 // of one survivor; cpu in µs
	views       uint64
}

// add takes in the rounds of one number of kills.
func (r *Result) add(kills []kill) {
	var took []time.Duration
	r.Rounds = len(kills)
	for _, k := range kills {
		if !k.complete {
			continue
		}
		took = append(took, k.took)
		r.ViewFrames += k.frames
		r.ViewCPU += k.cpu
		r.Views += float64(k.views)
	}
	r.Complete = len(took)
	if r.Complete == 0 {
		return
	}
	slices.Sort(took)
	r.ViewP50, r.ViewP99 = bench.Millis(bench.Percentile(took, 50)), bench.Millis(bench.Percentile(took, 99))
	n := float64(r.Complete)
	r.ViewFrames, r.ViewCPU, r.Views = bench.Round(r.ViewFrames/n, 2), bench.Round(r.ViewCPU/n, 1),
		bench.Round(r.Views/n, 2)
}
