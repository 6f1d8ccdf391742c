package collective

import (
	"context"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Agree returns the bits that are set in every process's value. All survivors get the
// same result even when processes die, and no [Restore] is needed. The value of a process
// that dies during the call counts for all survivors or for none.
//
// With [Report] it is MPI_Comm_agree of ULFM: it returns the agreed value together with a
// [*FailedError] that names the failed processes that not all had acknowledged
// ([Comm.AckFailed]) before the call. That error is the same on all processes, too.
//
// Agree and [Comm.Shrink] bring processes together whose calls have ended differently: the
// first Agree or Shrink of each process in a communicator matches the first of all
// others, and so on, whatever else they have called before. A process makes one at a
// time. They work in a revoked communicator. A live process that never reaches the call holds
// both up, unless they have a deadline ([Within]).
func Agree(ctx context.Context, c Communicator, value uint64, options ...Option) (uint64, error) {
	s := engine.Signature{Kind: engine.Agree, Root: engine.NoRoot, Length: engine.NoLength}
	var v invocation[byte, []byte, []byte] // without input and result
	if err := v.init(&s, optionsOf(options)); err != nil {
		return 0, err
	}
	agreed, err := core(c.comm()).Agree(ctx, s, value, v.within)
	return agreed, c.comm().publicError(err)
}
