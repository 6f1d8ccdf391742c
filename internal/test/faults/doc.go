// Package faults tests groups under the faults that a member must survive in ordinary
// operation: busy programs, overload, paused and restarted processes. Each test prints a
// line of JSON with its figures. docs/develop/evidence.md lists them.
package faults
