// Package pleach is group communication that finishes although members die.
//
// A broadcast goes along a tree, as fast as the network allows. Dead members leave
// gaps on a ring of ranks, and the live members beside a gap close it: each offers
// the message to its neighbors, further and further out, until it has heard from a
// live one on that side. No failure detector, acknowledgment, timeout or restart is
// needed to reach every live member (Küttler et al., Corrected Trees for Reliable
// Group Communication, PPoPP 2019).
//
// A process becomes a member of a group by one of three calls. [Start] is for
// processes that start together, under a launcher or with a list of addresses.
// [Create] begins a group with one member, and [Join] adds a process to a running
// group:
//
//	group, err := pleach.Join(ctx, pleach.Config{Group: "web"}, "10.0.0.1:7000")
//	if err != nil {
//		return err
//	}
//	defer group.Close()
//	err = group.Broadcast(ctx, []byte("flush the cache"))
//
// [Group.Messages] yields what other members broadcast: each message of a live
// member exactly once, in the order in which that member sent them.
//
// Members agree on numbered views: [Group.Views] yields them, with the members that
// joined and left. A message is delivered in the view it was sent in, to every
// member that continues to the next view or to none (view synchrony). A view needs
// a majority of the one before, or half of it with the lowest rank, so that a
// partitioned network continues on one side only. [Group.WaitStable] waits until every
// member of the view has received what this process broadcast.
//
// [NewWorld] is for jobs that compute together: the functions of package
// [github.com/pleach-go/pleach/collective] run in a [World] and complete with the
// failure-free result although processes die:
//
//	world, err := pleach.NewWorld(ctx, pleach.Config{}) // rank and addresses from the launcher
//	if err != nil {
//		return err
//	}
//	sum, err := collective.Allreduce(ctx, world, mine, collective.Sum[float64](), collective.Restore(load))
//	if err != nil {
//		return err
//	}
//	return world.Finalize(ctx)
//
// [Inspect] looks at a running group from outside.
package pleach
