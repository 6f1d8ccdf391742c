package shard

import (
	"errors"
	"fmt"
)

// ErrNotOwner is returned by [Shards.Serve] when this process does not own the partition. The
// error is a [*NotOwnerError]. It is also the cause of a context that ends because the
// ownership has ended.
var ErrNotOwner = errors.New("shard: not the owner")

// ErrClosed is returned after [Shards.Close].
var ErrClosed = errors.New("shard: closed")

// NotOwnerError is an [ErrNotOwner] that names the owner.
type NotOwnerError struct {
	Partition int
	// Owner is the member to ask instead. It is nil while the partition moves: it has an
	// owner again soon.
	Owner *Owner
}

func (e *NotOwnerError) Error() string {
	if e.Owner == nil {
		return fmt.Sprintf("%v of partition %d, which has none at present", ErrNotOwner, e.Partition)
	}
	return fmt.Sprintf("%v of partition %d: that is %s (rank %d), with token %d", ErrNotOwner, e.Partition, e.Owner.Member.ID, e.Owner.Member.Rank, e.Owner.Token)
}

// Unwrap returns [ErrNotOwner].
func (e *NotOwnerError) Unwrap() error { return ErrNotOwner }
