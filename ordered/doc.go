// Package ordered gives the members of a group one order of messages: every member receives
// the same messages in the same order, its own included, even when members die.
//
//	order, err := ordered.Join(ctx, ordered.Config{Group: config, Safe: true}, seeds...)
//	err = order.Broadcast(ctx, "accounts", []byte("alice: +5"))
//	for m, err := range order.Messages(ctx) { … } // m.Number, m.Topic, m.Data
//
// The order is that of virtual synchrony's ABCAST (Birman & Joseph 1987, Reliable Communication
// in the Presence of Failures): members send their messages to the leader of the view, which
// broadcasts them. If the leader dies, all others have received the same of its broadcasts when the
// next view begins. Members then send their remaining messages, once, to the next leader.
//
// Without Safe, a message is delivered as soon as it arrives. The last messages that a member
// delivers before it dies, or is cut off, may reach no other member. With Safe, a member delivers a
// message when a majority of the view's voters has it: every member that stays in the group then
// delivers it as well, as long as a majority of the voters of each view lives until the next one.
//
// A process that joins starts at some place in the order. With Config.Group.State, it first gets
// the state that the messages before that place have built up. Package replicated does so for
// programs that are state machines.
package ordered
