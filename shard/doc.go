// Package shard divides keys among the members of a group: each partition has one owner at a
// time, all members agree which one, and as little as possible moves when members come and go.
//
//	shards, err := shard.New(group, shard.Config{Partitions: 1024})
//	err = shards.Serve(ctx, key, func(ctx context.Context, token uint64) error {
//		return store.Write(ctx, key, value, token) // this process owns key
//	})
//	owner, ok := shards.Owner(key)             // to which member a request goes
//	for c := range shards.Changes(ctx) { … }   // partitions that change their owner
//
// A view of the group has a map from partition to member, by rendezvous hashing, the same at
// all members. When the view changes, the old owner of a partition first finishes its work
// ([Config.Release]), and then the new one begins, within milliseconds. If the old owner has
// died or cannot be reached, the new one waits for [Config.Lease].
//
// Ownership is exclusive in two ways. By token, always: no two owners of a partition have the
// same token, and a later owner has a higher one, even after all processes were stopped and
// started again (Config.TokenFloor, Config.DataDir). A store that refuses a token below the
// highest that it has seen is safe whatever happens. By time, while processes run, their clocks run
// alike, and messages between members of one view arrive within a fifth of Config.Lease: an owner
// that a majority of its view's voters does not answer stops serving within four fifths of Config.Lease,
// before another one begins.
//
// All members of the group call [New] with the same settings. They are compared: while members
// differ, no partition begins, and [Shards.Serve] returns a [*SettingsError]. After
// pleach.ForceView, two parts of a group may use the same tokens.
package shard
