// Package ordered gives the members of a group one order of messages: every member receives
// the same messages in the same order, its own included, although members die.
//
//	order, err := ordered.Join(ctx, ordered.Config{Group: config, Safe: true}, seeds...)
//	err = order.Broadcast(ctx, "accounts", []byte("alice: +5"))
//	for m, err := range order.Messages(ctx) { … } // m.Number, m.Topic, m.Data
//
// The order is that of virtual synchrony's ABCAST (Birman & Joseph 1987, Reliable Communication
// in the Presence of Failures): members send their messages to the leader of the view, which
// broadcasts them. If it dies, all others have received the same of it when the next view
// begins, and what they have not is sent again, once, to the next leader.
//
// Without Safe, a message is delivered as soon as it arrives. A member that dies, or is cut off,
// may have delivered messages last that no other member gets. With Safe, a member delivers a
// message when a majority of the view has it: what one member has delivered, every member
// delivers that stays in the group, as long as a majority of each view lives until the next one.
//
// A process that joins begins at some place in the order. Config.Group.State gives it the state
// that the messages before that place have come to. Package replicated does so for programs that
// are state machines.
package ordered
