// Package trouble has the cases of ordinary trouble that a member of a view must be
// able to rely on: busy programs, overload, paused and restarted processes. Each is a
// test that prints a line of JSON with its figures. docs/develop/evidence.md lists them.
package trouble
