// Package pleach is group communication that finishes although members die.
//
// A message is sent along a tree, as fast as the network allows. Members that
// died leave gaps, and the survivors next to a gap on a ring close it: each
// offers the message to its neighbors, further and further out, until it has
// heard from a live one on that side. No failure detector, acknowledgment,
// timeout or restart is needed to reach every live member.
//
// [Join] makes this process a member of a group; [Group.Broadcast] tells all
// others something; [Group.Messages] is what they tell. Every live member gets
// every message of a live root exactly once, in the order the root sent them.
//
//	group, err := pleach.Join(ctx, pleach.Config{})
//	if err != nil {
//		return err
//	}
//	defer group.Close()
//	err = group.Broadcast(ctx, []byte("flush the cache"))
//
// Who is in the group is agreed: all members have the same numbered [View]s. A
// group starts as a whole, from Config or whatever launched the program
// ([github.com/pleach-go/pleach/bootstrap]), or with one member; others join later,
// leave, die and come back. Broadcasts do not wait for any of that: a member that
// has died unnoticed costs the others nothing. [Group.Stable] waits until everybody
// in the view has what was sent.
//
// Under it lie state machines without I/O
// ([github.com/pleach-go/pleach/broadcast],
// [github.com/pleach-go/pleach/stream],
// [github.com/pleach-go/pleach/membership]) that a simulator drives as well
// ([github.com/pleach-go/pleach/logp]).
package pleach
