package collective

import "context"

// Admit derives the communicator of a job's processes and of those that wait to replace
// dead ones. If none waits, it returns the one it was called with. Programs call
// pleach.World.Admit, which is made of it and says more.
func (c Comm) Admit(ctx context.Context) (Comm, error) {
	next, err := core(c).Admit(ctx)
	return Comm(next), publicError(err)
}
