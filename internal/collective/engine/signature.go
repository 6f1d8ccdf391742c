package engine

import (
	"fmt"
	"reflect"
)

// Kind is which collective is called.
type Kind uint8

// The collectives.
const (
	Barrier Kind = iota + 1
	Broadcast
	Scatter
	Gather
	Reduce
	Allreduce
	Allgather
	ReduceScatter
	Alltoall
	Scan
	Agree
	Shrink
	Admit
	Once
	Finalize
	Exscan
	Split
	Exchange
)

// String returns the function's name.
func (k Kind) String() string {
	names := [...]string{
		Barrier: "Barrier", Broadcast: "Broadcast", Scatter: "Scatter", Gather: "Gather",
		Reduce: "Reduce", Allreduce: "Allreduce", Allgather: "Allgather",
		ReduceScatter: "ReduceScatter", Alltoall: "Alltoall", Scan: "Scan", Agree: "Agree",
		Shrink: "Shrink", Admit: "Admit", Once: "Once", Finalize: "Finalize", Exscan: "Exscan",
		Split: "Split", Exchange: "Exchange",
	}
	if k == 0 {
		return "no call yet"
	}
	if int(k) >= len(names) {
		return fmt.Sprintf("collective %d", uint8(k))
	}
	return names[k]
}

// repairs reports whether programs make the call after a failure. Such calls are ordered
// among themselves, and work in a revoked communicator.
func (k Kind) repairs() bool { return k == Agree || k == Shrink || k == Admit || k == Finalize }

// FailureMode is what a call does when a member fails.
type FailureMode uint8

// The failure modes.
const (
	RunThrough FailureMode = iota // survivors take over the tasks of the failed
	Report                        // the call ends with an error
	Corrected                     // the call completes without the failed
)

func (m FailureMode) String() string {
	switch m {
	case RunThrough:
		return "run-through"
	case Report:
		return "report"
	case Corrected:
		return "corrected"
	}
	return fmt.Sprintf("failure mode %d", uint8(m))
}

// Signature is what calls of one number must have in common on all processes. A mismatch
// is found when their messages meet.
type Signature struct {
	Kind    Kind
	Mode    FailureMode
	Element byte  // the elements' kind and size, if they are sent as they lie in memory
	Root    int   // or NoRoot
	Length  int64 // or NoLength
	Detail  uint64
}

// NoRoot and NoLength stand for what a collective does not have, or what may differ.
const (
	NoRoot   = -1
	NoLength = -1
)

// total reports whether a process that has the result knows that all others have begun.
func (s Signature) total() bool {
	switch s.Kind {
	case Barrier, Allreduce, Allgather, ReduceScatter, Alltoall, Split:
		return s.Mode != Corrected
	}
	return false
}

// repeatable reports whether a task that is run again sends the same bytes again. An
// encoder may not, as gob does not with maps.
func (s Signature) repeatable() bool { return s.Mode == RunThrough && s.Element != 0 }

// endsByFailure reports whether the call ends when a member fails.
func (s Signature) endsByFailure() bool { return s.Mode == Report && !s.Kind.repairs() }

// String returns the call as errors name it.
func (s Signature) String() string {
	text := s.Kind.String()
	if s.Kind == 0 || s.Kind == Barrier || s.Kind == Once || s.Kind == Split || s.Kind.repairs() {
		return text
	}
	text += "[" + elementName(s.Element) + "]("
	if s.Root != NoRoot {
		text += fmt.Sprintf("root %d, ", s.Root)
	}
	if s.Length != NoLength {
		text += fmt.Sprintf("%d elements, ", s.Length)
	}
	return text + s.Mode.String() + ")"
}

// elementName names the kind of the elements.
func elementName(element byte) string {
	if element == 0 {
		return "by Codec"
	}
	return reflect.Kind(element & 0x1f).String()
}
