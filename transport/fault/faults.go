package fault

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// A Fault is a change of a network: one of the types below. Its String is its
// statement in a script.
type Fault interface {
	fmt.Stringer
	apply(*Network)
}

// Drop drops frames at random from now on.
type Drop struct {
	Percent float64
	On      Pairs
}

// Duplicate sends frames twice at random from now on.
type Duplicate struct {
	Percent float64
	On      Pairs
}

// Reorder holds frames back at random from now on, each for a random time of at most
// Within, while later ones pass.
type Reorder struct {
	Percent float64
	Within  time.Duration
	On      Pairs
}

// Delay holds all frames back from now on: for Fixed plus a random time of at most
// Jitter. Their order stays.
type Delay struct {
	Fixed, Jitter time.Duration
	On            Pairs
}

// Cut drops all frames silently, until [Heal].
type Cut struct{ On Pairs }

// Partition drops all frames between ranks of different groups silently, until [Heal]
// or another partition. The ranks that are in no group are one more group.
type Partition struct{ Groups [][]Range }

// Range is the ranks from First to Last, inclusive.
type Range struct{ First, Last protocol.Rank }

// Heal ends all cuts and the partition.
type Heal struct{}

// Freeze stops a rank as SIGSTOP does, until [Thaw]: its handler is not called, and
// the frames it sends are held. Frames that arrive for it wait in the inner transport.
type Freeze struct{ Rank protocol.Rank }

// Thaw resumes a frozen rank and releases the frames that were held.
type Thaw struct{ Rank protocol.Rank }

// Kill cuts a rank off for good, with its frames in flight, and calls Config.OnKill.
type Kill struct{ Rank protocol.Rank }

// Reset breaks all connections of a rank: the handlers of both sides get Down with
// [ErrReset], and when both have returned, Up. Until then Send returns
// [transport.ErrDown]. Frames that are held here, or arrive before that Up, are lost.
type Reset struct{ Rank protocol.Rank }

func (f Drop) String() string      { return words("drop", percent(f.Percent), f.On.String()) }
func (f Duplicate) String() string { return words("duplicate", percent(f.Percent), f.On.String()) }
func (f Cut) String() string       { return words("cut", f.On.String()) }
func (f Heal) String() string      { return "heal" }
func (f Freeze) String() string    { return fmt.Sprintf("freeze %d", f.Rank) }
func (f Thaw) String() string      { return fmt.Sprintf("thaw %d", f.Rank) }
func (f Kill) String() string      { return fmt.Sprintf("kill %d", f.Rank) }
func (f Reset) String() string     { return fmt.Sprintf("reset %d", f.Rank) }

func (f Reorder) String() string {
	return words("reorder", percent(f.Percent), "within", f.Within.String(), f.On.String())
}

func (f Delay) String() string {
	jitter := ""
	if f.Jitter != 0 {
		jitter = "jitter " + f.Jitter.String()
	}
	return words("delay", f.Fixed.String(), jitter, f.On.String())
}

func (f Partition) String() string {
	groups := make([]string, len(f.Groups))
	for i, g := range f.Groups {
		ranges := make([]string, len(g))
		for j, r := range g {
			ranges[j] = r.String()
		}
		groups[i] = strings.Join(ranges, " ")
	}
	return words("partition", strings.Join(groups, " | "))
}

// String returns "3-7", or "3" for a single rank.
func (r Range) String() string {
	if r.First == r.Last {
		return strconv.FormatInt(int64(r.First), 10)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// words joins the words that are not empty.
func words(all ...string) string {
	var b strings.Builder
	for _, w := range all {
		if w != "" && b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w)
	}
	return b.String()
}

func percent(p float64) string { return strconv.FormatFloat(p, 'g', -1, 64) + "%" }

// group returns the number of a rank's group; it is 0 for ranks in no group.
func (f Partition) group(rank protocol.Rank) int {
	for i, g := range f.Groups {
		for _, r := range g {
			if r.First <= rank && rank <= r.Last {
				return i + 1
			}
		}
	}
	return 0
}
