package lifecycle

import (
	"encoding/binary"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/machine/unicast"
	"github.com/pleach-go/pleach/protocol"
)

// synced is a view in which some members have the state.
func synced(number uint64, have ...protocol.Rank) *membership.View {
	var members []membership.Member
	for rank, id := range []string{"a", "b", "c"} {
		m := named(protocol.Rank(rank), id, 1, uint64(50+rank))
		for _, r := range have {
			m.Synced = m.Synced || r == m.Rank
		}
		members = append(members, m)
	}
	v := viewOf(number, members...)
	return &v
}

// replicaOf is the replica of a rank.
func replicaOf(rank protocol.Rank, v *membership.View) *Replica {
	self, _ := v.Member(rank)
	return NewReplica(self, v)
}

func ranksOf(members []*membership.Member) (ranks []protocol.Rank) {
	for _, m := range members {
		ranks = append(ranks, m.Rank)
	}
	return ranks
}

// The lowest rank that has the state gives it to each member that lacks it, once.
func TestReplicaProvidesState(t *testing.T) {
	for rank, want := range []int{0, 1, 0} {
		r := replicaOf(protocol.Rank(rank), synced(7, 1, 2))
		if got := r.Begins(7); len(got) != want || want > 0 && got[0].Rank != 0 {
			t.Errorf("rank %d gives the state to ranks %v", rank, ranksOf(got))
		}
		if got := r.Begins(7); got != nil {
			t.Errorf("rank %d gives the state to ranks %v in a view that has begun", rank, ranksOf(got))
		}
		r.Installed(synced(8, 1, 2))
		if got := r.Begins(8); got != nil {
			t.Errorf("rank %d gives the state to ranks %v again", rank, ranksOf(got))
		}
	}
	r := replicaOf(2, synced(7, 1, 2))
	if got := r.Begins(7); got != nil {
		t.Fatalf("ranks %v", ranksOf(got))
	}
	r.Installed(synced(8, 2)) // without rank 1
	if got := ranksOf(r.Begins(8)); len(got) != 2 {
		t.Errorf("without the first, the next gives the state to ranks %v", got)
	}
}

// A member takes the first state that arrives, and gives others what follows from it only.
func TestReplicaTakesState(t *testing.T) {
	r := replicaOf(0, synced(7, 1))
	if !r.Lacking() || r.Arrived() != nil || r.Since() != 0 || r.OfferView() != 0 {
		t.Errorf("%+v", r)
	}
	if _, err := r.Received(1, 7, unicast.Failed, []byte("no memory")); err == nil || err.Error() != "no memory" {
		t.Errorf("%v", err)
	}
	_, _ = r.Received(1, 7, unicast.Chosen, nil) // there is no election
	if r.Arrived() != nil {
		t.Error("it takes a choice without an election")
	}
	_, _ = r.Received(1, 7, unicast.OK, []byte("one"))
	_, _ = r.Received(2, 8, unicast.OK, []byte("two"))
	if a := r.Arrived(); a == nil || a.From != 1 || a.View != 7 || string(a.Data) != "one" || a.Own || !r.Lacking() {
		t.Fatalf("%+v", a)
	}
	r.Restored()
	if r.Lacking() || r.Since() != 7 || r.Arrived() != nil {
		t.Errorf("%+v", r)
	}
	r.Installed(synced(6, 0))
	if got := r.Begins(6); got != nil {
		t.Errorf("it gives ranks %v the state in a view before its own", ranksOf(got))
	}
}

// If no member of a view has the state, each makes one offer to the lowest rank, which chooses.
func TestReplicaElects(t *testing.T) {
	v := synced(7)
	replicas := []*Replica{replicaOf(0, v), replicaOf(1, v), replicaOf(2, v)}
	for rank, r := range replicas {
		if to, _, _ := r.StateOffer(); to != nil || r.OfferView() != 7 {
			t.Fatalf("rank %d offers a state that it has not", rank)
		}
		if to, _ := r.Offer(6, 1); to != nil {
			t.Errorf("rank %d makes an offer in another view", rank)
		}
		to, offer := r.Offer(7, uint64(rank))
		if to == nil || to.Rank != 0 || binary.BigEndian.Uint64(offer) != uint64(rank) {
			t.Fatalf("rank %d offers %x to %v", rank, offer, to)
		}
		if to, _ := r.Offer(7, 9); to != nil || r.OfferView() != 0 {
			t.Errorf("rank %d makes two offers", rank)
		}
		chosen, err := replicas[0].Received(protocol.Rank(rank), 7, unicast.Offered, offer)
		if err != nil || (chosen != nil) != (rank == 2) || chosen != nil && chosen.Rank != 2 {
			t.Errorf("after rank %d, %v is chosen, %v", rank, chosen, err)
		}
	}
	r := replicas[2]
	_, _ = r.Received(0, 6, unicast.Chosen, nil)
	if r.Arrived() != nil {
		t.Error("it is chosen in another view")
	}
	_, _ = r.Received(0, 7, unicast.Chosen, nil)
	if a := r.Arrived(); a == nil || !a.Own || a.View != 7 {
		t.Fatalf("%+v", a)
	}
	r.Installed(synced(8)) // a new election, before the others know that it has the state
	if to, view, offer := r.StateOffer(); to == nil || view != 8 || binary.BigEndian.Uint64(offer) != HasState {
		t.Errorf("it offers %x in view %d", offer, view)
	}
	r.Installed(synced(9, 1))
	if to, _, _ := r.StateOffer(); to != nil || r.OfferView() != 0 {
		t.Error("it makes an offer although a member has the state")
	}
}

// The first member of a group has the state.
func TestReplicaOfFirstMember(t *testing.T) {
	if r := replicaOf(1, synced(1, 1)); r.Lacking() || r.Since() != 1 {
		t.Errorf("%+v", r)
	}
}
