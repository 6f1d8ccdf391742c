package collective

import (
	"fmt"
	"reflect"
)

// kind is which collective is called.
type kind uint8

const (
	barrier kind = iota + 1
	broadcasting
	scattering
	gathering
	reducing
	allreducing
	allgathering
	reduceScattering
	alltoall
	scanning
	agreeing
	shrinking
)

// String returns the function's name.
func (k kind) String() string {
	names := [...]string{
		barrier: "Barrier", broadcasting: "Broadcast", scattering: "Scatter", gathering: "Gather",
		reducing: "Reduce", allreducing: "Allreduce", allgathering: "Allgather",
		reduceScattering: "ReduceScatter", alltoall: "Alltoall", scanning: "Scan", agreeing: "Agree",
		shrinking: "Shrink",
	}
	if k == 0 {
		return "no call yet"
	}
	if int(k) >= len(names) {
		return fmt.Sprintf("collective %d", uint8(k))
	}
	return names[k]
}

// repairs reports whether it is one of the calls that programs make when others
// have failed. They have an order of their own, and are made in revoked worlds too.
func (k kind) repairs() bool { return k == agreeing || k == shrinking }

// signature is what calls of one number must have in common: a mismatch is found
// when their messages meet.
type signature struct {
	kind        kind
	failureMode failureMode
	element     byte  // the elements' kind and size, if they travel as they are
	root        int   // -1: none
	length      int64 // -1: it may differ
	detail      uint64
}

// total reports whether who has its result knows that all others have begun.
func (s signature) total() bool {
	switch s.kind {
	case barrier, allreducing, allgathering, reduceScattering, alltoall:
		return s.failureMode != corrected
	}
	return false
}

// endsByFailure reports whether a call ends when a member fails.
func (s signature) endsByFailure() bool { return s.failureMode == report && !s.kind.repairs() }

// noLength and noRoot stand in a signature for what may differ.
const (
	noLength = -1
	noRoot   = -1
)

// String returns the call as errors name it.
func (s signature) String() string {
	text := s.kind.String()
	if s.kind == 0 || s.kind == barrier || s.kind.repairs() {
		return text
	}
	text += "[" + elementName(s.element) + "]("
	if s.root != noRoot {
		text += fmt.Sprintf("root %d, ", s.root)
	}
	if s.length != noLength {
		text += fmt.Sprintf("%d elements, ", s.length)
	}
	return text + fmt.Sprintf("%v, variant %04x)", s.failureMode, uint16(s.detail))
}

// elementName names what elementOf returns.
func elementName(element byte) string {
	if element == 0 {
		return "by Codec"
	}
	return reflect.Kind(element & 0x1f).String()
}

// detailOf tells apart what has no number of its own: types and operators.
func detailOf(names ...string) uint64 {
	// FNV-1a, by hand: every call does it, and package fnv would allocate.
	h := uint64(0xcbf29ce484222325)
	for _, name := range names {
		for i := range len(name) {
			h = (h ^ uint64(name[i])) * 0x100000001b3
		}
		h = (h ^ '\n') * 0x100000001b3
	}
	return h
}
