// Package stabilization measures how soon the members of a group agree on a view
// without a member that was killed. Every member is a process, a [Survivor], which
// reports what it sees. A killed member is started again and rejoins before the
// next kill.
package stabilization
