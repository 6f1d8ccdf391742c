package collective

// A call logs what it sends until all processes have finished it, so one call of a very
// long vector would take several times its memory. A long Allreduce is therefore made as
// several calls, one for each part of the vector. The log of one part is dropped while the
// next one runs, and its memory is used again.

import (
	"context"
	"math"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// partOfAllreduce returns how many elements the parts of an Allreduce have. All processes
// choose the same. A reserved call has one number and stays whole, and so does one with
// Takeover, because a process that takes a task over lacks the parts that are complete.
func (v *invocation[T, In, Out]) partOfAllreduce(c Comm, s *engine.Signature) int {
	part := core(c).Thresholds().Part
	if part == 0 || !v.isRaw() || s.Mode == engine.Corrected || core(c).Reserved() || v.takeover != nil {
		return math.MaxInt
	}
	return max(1, part/v.bytes(1))
}

// allreduceInParts makes an Allreduce as several calls.
func allreduceInParts[T any](ctx context.Context, c Comm, v *invocation[T, []T, []T], s engine.Signature, part int,
	op Operator[T],
) ([]T, error) {
	n := len(v.in)
	out := v.into
	if cap(out) < n {
		out = make([]T, n)
	}
	err := segments(n, part, func(_ int, p span) error {
		return c.do(ctx, s, func(t *engine.Task) error {
			in, err := v.inputElements(t)
			if err != nil {
				return err
			}
			mine := out[p.from:p.to]
			if !t.Own() {
				mine = make([]T, p.to-p.from) // the process of that task had the result, or needs none
			}
			if err := combineEverywhere(t, v, in[p.from:p.to], mine, op); err != nil {
				return err
			}
			return op.confirm(t)
		})
	})
	return result(out[:n], err)
}
