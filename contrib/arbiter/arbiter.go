// Package arbiter decides between two halves of a group by a record in a store outside of the group.
// Each half may ask whether it is granted the next view; at most one half gets it. Packages
// [github.com/pleach-go/pleach/contrib/arbiter/file], [github.com/pleach-go/pleach/contrib/arbiter/etcd]
// and [github.com/pleach-go/pleach/contrib/arbiter/kubernetes] are stores; a program can add its own.
//
// The record of a group contains the highest view that was granted, and to which members. It never
// expires. A group that is started from scratch begins with low views again, which the arbiter
// refuses: delete the record when all members of the old group have ended.
package arbiter

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/pleach-go/pleach"
)

// Store holds a record for each group. It is safe for concurrent use.
type Store interface {
	// Load returns the record of a group, nil if there is none, and a function that replaces it. The
	// record may be an older one: then the function swaps nothing.
	Load(ctx context.Context, group string) (record []byte, swap Swap, err error)
}

// Swap replaces a record, durably, if it is still the one that was loaded, and reports whether it
// was. After an error, the record may be either one.
type Swap func(ctx context.Context, record []byte) (swapped bool, err error)

// Arbiter grants views by the records of a store, for Config.Arbiter. It is safe for concurrent use.
type Arbiter struct{ store Store }

var _ pleach.Arbiter = (*Arbiter)(nil)

// New returns an arbiter with a store. All members of a group use the same store.
func New(s Store) *Arbiter { return &Arbiter{s} }

// Grant implements [pleach.Arbiter]. After an error, the view may be granted.
func (a *Arbiter) Grant(ctx context.Context, claim pleach.ArbiterClaim) (bool, error) {
	if claim.View == 0 || len(claim.Side) == 0 {
		return false, errors.New("arbiter: a claim needs a view and members")
	}
	want := recordOf(&claim)
	encoded, err := json.Marshal(want)
	if err != nil {
		return false, err
	}
	for { // another side has swapped in each round but the last
		stored, swap, err := a.store.Load(ctx, claim.Group)
		if err != nil {
			return false, fmt.Errorf("arbiter: load the record of group %q: %w", claim.Group, err)
		}
		is, err := decode(stored)
		if err != nil {
			return false, fmt.Errorf("arbiter: decode the record of group %q: %w", claim.Group, err)
		}
		if is.View >= want.View {
			return is.equal(want), nil
		}
		swapped, err := swap(ctx, encoded)
		if err != nil {
			return false, fmt.Errorf("arbiter: swap the record of group %q: %w", claim.Group, err)
		}
		if swapped {
			return true, nil
		}
	}
}

// record is the last grant of a group.
type record struct {
	View uint64    `json:"view"` // 0: none
	Side []process `json:"side"` // by rank
}

// process identifies a member.
type process struct {
	Rank        int    `json:"rank"`
	Incarnation uint64 `json:"incarnation"`
	ID          string `json:"id"` // for operators
}

func recordOf(c *pleach.ArbiterClaim) *record {
	r := &record{View: c.View}
	for _, m := range c.Side {
		r.Side = append(r.Side, process{m.Rank, m.Incarnation, m.ID})
	}
	slices.SortFunc(r.Side, func(a, b process) int { return cmp.Compare(a.Rank, b.Rank) })
	return r
}

func decode(stored []byte) (*record, error) {
	r := new(record)
	if stored == nil {
		return r, nil
	}
	if err := json.Unmarshal(stored, r); err != nil {
		return nil, err
	}
	if r.View == 0 || len(r.Side) == 0 {
		return nil, fmt.Errorf("%q lacks a view or members", stored)
	}
	return r, nil
}

// equal reports whether two grants are the same.
func (r *record) equal(o *record) bool {
	return r.View == o.View && slices.EqualFunc(r.Side, o.Side, func(a, b process) bool {
		return a.Rank == b.Rank && a.Incarnation == b.Incarnation
	})
}
