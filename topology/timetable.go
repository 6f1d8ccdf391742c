package topology

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// timetable holds the number of processes born before each time, in a tree that
// grows at full speed: every colored process starts a send each step a, and a
// receiver is colored a delay b after the send began. Binomial (1, 1), Lamé
// (1, k) and optimal trees (o, 2o+L) are one family, T(t) = T(t−a) • T(t−b)
// (Corrected Trees §3.2.2–3.2.3).
//
// Let S(t) be the number of sends that start at time t. Each is the birth of one
// process. The senders at t are the senders at t−a and the processes colored at t:
//
//	S(0) = 1,  S(t) = S(t−a) + S(t−b),  S(t) = 0 for t < 0.
//
// B(t) = 1 + S(0) + … + S(t−1) processes are born before t. The table holds only
// B, as S(t) = B(t+1) − B(t). B grows exponentially, so the table is short.
type timetable struct {
	size        protocol.Rank
	step, delay protocol.Time   // a and b
	born        []protocol.Rank // B, up to the first that reaches size
}

// maxSlots bounds the memory of a timetable (8 bytes a slot). Only latencies in
// needlessly fine units, or a nearly flat tree over millions of ranks, reach it.
const maxSlots = 1 << 22

func newTimetable(shape Shape, size protocol.Rank) (*timetable, error) {
	step, delay := shape.rhythm()
	tt := &timetable{size: size, step: step, delay: delay, born: []protocol.Rank{1}}
	for t := protocol.Time(0); tt.born[t] < size; t++ {
		if t >= maxSlots {
			return nil, fmt.Errorf(
				"topology: %s tree over %d ranks takes more than %d send slots: choose a smaller K, or give latency and overhead in a coarser unit", shape, size, maxSlots)
		}
		births := tt.births(t-step) + tt.births(t-delay)
		if t == 0 {
			births = 1
		}
		tt.born = append(tt.born, tt.born[t]+births)
	}
	return tt, nil
}

// births returns S(t).
func (tt *timetable) births(t protocol.Time) protocol.Rank {
	if t < 0 {
		return 0
	}
	return tt.born[t+1] - tt.born[t]
}

// slot returns the time at which the send to rank r starts, r ≥ 1: the last t
// with B(t) ≤ r.
func (tt *timetable) slot(r protocol.Rank) protocol.Time {
	if tt.delay == 1 && tt.step == 1 {
		return protocol.Time(bits.Len64(uint64(r)) - 1) // binomial: B(t) = 2^t
	}
	next, _ := slices.BinarySearch(tt.born, r+1)
	return protocol.Time(next - 1)
}

// end returns the first time at which all processes are born.
func (tt *timetable) end() protocol.Time { return protocol.Time(len(tt.born) - 1) }

// Size returns the number of ranks.
func (tt *timetable) Size() protocol.Rank { return tt.size }

// Root returns 0.
func (tt *timetable) Root() protocol.Rank { return 0 }
