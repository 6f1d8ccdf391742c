// Package admission decides which processes are admitted and what each may do. Every connection that a process
// accepts passes its [Gate], before anything is read from it, and everything that the other
// side then wants passes [Authorizer.Check], which knows the caller, the group and the right that
// is asked for. docs/operate/security.md has the same as a table.
package admission
