package collective

import (
	"context"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Shrink derives a communicator of the surviving processes, agreed on by all of them.
// Their ranks are 0 to n-1 in the old order ([Comm.WorldRank] returns the old ones), each
// owns one task, and the numbers of calls start again at 0. A process that dies during Shrink may be a
// member of the new communicator, and has failed there.
//
// Shrink is MPI_Comm_shrink of ULFM. Like [Agree] it has to be called by all survivors,
// whatever calls they came from, and works in a revoked communicator. The new
// communicator ends with the one it was derived from. Its only option is [Within].
func (c Comm) Shrink(ctx context.Context, options ...Option) (Comm, error) {
	s := engine.Signature{Kind: engine.Shrink, Root: engine.NoRoot, Length: engine.NoLength, Mode: engine.Report}
	var v invocation[byte, []byte, []byte] // without input and result
	given := s
	if err := v.init(&given, optionsOf(options)); err != nil {
		return Comm{}, err
	}
	sub, err := core(c).Shrink(ctx, s, v.within)
	return Comm(sub), c.publicError(err)
}
