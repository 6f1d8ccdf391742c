package shard

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pleach-go/pleach"
)

// ErrNotOwner is returned by [Shards.Serve] when this process does not own the partition. The
// error is a [*NotOwnerError]. It is also the cause of a context that ends because the
// ownership has ended.
var ErrNotOwner = errors.New("shard: not the owner")

// ErrClosed is returned after [Shards.Leave].
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
	return fmt.Sprintf("%v of partition %d: that is %s (rank %d), with token %d", ErrNotOwner, e.Partition,
		e.Owner.Member.ID, e.Owner.Member.Rank, e.Owner.Token)
}

// Unwrap returns [ErrNotOwner].
func (e *NotOwnerError) Unwrap() error { return ErrNotOwner }

// SettingsError means that another member has a setting of [Config] with another value, so that no
// partition begins. It is an [ErrNotOwner], too.
type SettingsError struct {
	// Setting is the name of the field of Config.
	Setting string
	// Member is the other member.
	Member pleach.Member
	// Own and Other are the values of this process and of the other member. They are digests of
	// all members' weights for Weight.
	Own, Other string
}

func (e *SettingsError) Error() string {
	return fmt.Sprintf("shard: Config.%s is %s at this process and %s at member %s (rank %d): all members must use the same",
		e.Setting, e.Own, e.Other, e.Member.ID, e.Member.Rank)
}

// Unwrap returns [ErrNotOwner].
func (e *SettingsError) Unwrap() error { return ErrNotOwner }

// hindrance returns why no partition begins.
func (s *Shards) hindrance() error {
	if s.failed != nil {
		return s.failed
	}
	c, ok := s.machine.Conflict()
	if !ok {
		return nil
	}
	e := &SettingsError{Setting: c.Setting}
	e.Member, _ = s.view.Member(c.With.Rank)
	e.Own, e.Other = strconv.FormatUint(c.Own, 10), strconv.FormatUint(c.Other, 10)
	if c.Setting == "Lease" || c.Setting == "HandoffTimeout" {
		e.Own, e.Other = time.Duration(c.Own).String(), time.Duration(c.Other).String()
	}
	return e
}
