package reproduce

import (
	"maps"
	"slices"
)

// sortedKeys are a map's keys in order: what is written must not depend on the
// order of a map.
func sortedKeys[K comparable, V any](m map[K]V, compare func(a, b K) int) []K {
	return slices.SortedFunc(maps.Keys(m), compare)
}
