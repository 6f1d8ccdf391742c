package collective

import "context"

// Agree returns, to all who survive, the bits that are set in everybody's value:
// the same to each, although processes die, and without a Restore. Of a process
// that dies during the call, the value counts for all or for none.
//
// With [Report] it is MPI_Comm_agree of ULFM: beside the value, which is agreed on
// nevertheless, it returns a [*FailedError] that names those who have failed and
// whom not all had acknowledged ([Place.AckFailed]) before the call. That is the
// same everywhere, too.
//
// Agree and [Shrink] are how processes find each other again that a failure has
// driven apart: their first Agree or Shrink in a world is the first for all, and so
// on, whatever else they have called before. They are made one at a time, and in
// a revoked world too.
func Agree(ctx context.Context, w Communicator, value uint64, options ...Option) (uint64, error) {
	s := signature{kind: agreeing, root: noRoot, length: noLength}
	if _, err := newInvocation[byte, []byte, []byte](&s, nil, options); err != nil {
		return 0, err
	}
	var agreed proposal
	var call uint64
	err := w.comm().do(ctx, s, func(t *task) (err error) {
		if t.own() {
			call = t.call.number
			agreed, _, err = t.agree(value)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	if s.failureMode == report {
		e := w.comm().engine
		e.mu.Lock()
		defer e.mu.Unlock()
		if failed := e.failedBetween(agreed.acked, agreed.view); len(failed) > 0 {
			err = &FailedError{Ranks: failed, View: agreed.view, Call: call, What: s.String()}
		}
	}
	return agreed.value, err
}
