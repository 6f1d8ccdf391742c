// Package transfer copies a file to every member of a group.
//
// The sender broadcasts a manifest: name, mode, size and the SHA-256 of each chunk. Each
// receiver compares that with what it has of the file, and answers which chunks it lacks.
// The sender broadcasts the chunks that many members lack, along the group's tree, and
// sends the others to the members that lack them. It then asks again, until every member
// of the view has the file or has said why not. That is a round.
//
//   - copy.go and source.go are the sender: rounds, and the file that is read.
//   - receive.go and target.go are a receiver: a file that comes in, and where it goes.
//   - service.go is what both share: messages that arrive, and requests.
//   - manifest.go and message.go are what travels.
//
// A receiver writes to a file next to the target and renames it when every chunk is there
// and on the disk. A chunk that is there was verified. A copy that was interrupted continues
// where it ended: the chunks of the partial file are verified again, and only the others
// travel. Views tell the sender which members have died, so that it does not wait for
// them, and which have joined.
//
// Receivers write only below the directories that their configuration allows ([Config.Dirs]).
package transfer
