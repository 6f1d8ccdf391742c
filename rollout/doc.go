// Package rollout releases a payload to a group in waves: first to one member, then to a tenth, then
// to all. After each wave all members that have the payload are asked whether they are well, and the
// rollout continues, pauses, or stops and reverts.
//
//	table := rollout.NewTable()
//	replica, err := replicated.Join(ctx, replicated.Config{
//		Group: config, Machines: map[string]replicated.Machine{"rollouts": table},
//	}, seeds...)
//	rollouts, err := rollout.New(rollout.Config{
//		Replica: replica, Machine: "rollouts", Table: table,
//		Apply: apply, Gate: ready, Revert: restore,
//	})
//	id, err := rollouts.Start(ctx, rollout.Spec{Payload: new, Revert: old, Waves: "1,10%,50%,100%"})
//	status, err := rollouts.Wait(ctx, id)
//
// All members keep the state of a rollout, and each of them does its own part: the process that has
// started the rollout may end. The payload is applied once at most by the processes of an ID: a member
// that dies while it applies the payload is not asked again when it is back. What is reverted may be
// reverted again if a member dies meanwhile.
//
// The state is in memory, as that of package replicated: if all members of the group end, or most of
// them at once, the rollout is forgotten where it was. Package internal/services/rollouts has the rules.
package rollout
