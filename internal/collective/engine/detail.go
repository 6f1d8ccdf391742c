package engine

import (
	"fmt"
	"strings"
)

// boolean is the type of bools in calls of the library for C, see bindings/c/types.go.
const boolean = "main.boolean"

// DetailOf hashes what a signature has no field for: the names of types and operators.
func DetailOf(names ...string) uint64 {
	// FNV-1a by hand, because every call does it and package hash/fnv would allocate.
	h := uint64(0xcbf29ce484222325)
	for _, name := range names {
		for i := range len(name) {
			h = (h ^ uint64(name[i])) * 0x100000001b3
		}
		h = (h ^ '\n') * 0x100000001b3
	}
	return h
}

// detailText returns what a detail stands for, if it is one of the usual: an operator of
// package collective, a number of the language or a boolean of the library for C, and the deaths that a
// corrected call tolerates.
func (s Signature) detailText(selection uint64) string {
	const mostDead = 64
	for _, number := range []string{
		"int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
		boolean,
	} {
		name := strings.TrimPrefix(number, "main.")
		if s.Detail-selection == DetailOf(number) {
			return " of " + name
		}
		for _, operator := range []string{"sum", "prod", "min", "max", "and", "or"} {
			dead := s.Detail - selection - DetailOf(number, operator)
			switch {
			case dead == 0 && s.Mode != Corrected:
				return fmt.Sprintf(" by %s of %s", operator, name)
			case dead <= mostDead && s.Mode == Corrected:
				return fmt.Sprintf(" by %s of %s, for %d dead", operator, name, dead)
			}
		}
	}
	return " by an operator, an element type, Corrected or Network that differs"
}
