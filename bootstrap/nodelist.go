package bootstrap

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Slurm shortens lists of nodes: node[001,007-009],host2 is node001, node007,
// node008, node009 and host2. A name may have several brackets. Without limits a
// line of text could ask for all the memory there is.
const (
	maxNodes      = 65536
	maxNodeName   = 253 // as DNS has it
	maxBrackets   = 8   // Slurm itself stops at 5
	maxNodeDigits = 18  // fits 64 bits
)

var errTooManyNodes = fmt.Errorf("more than %d nodes", maxNodes)

// expandNodes returns all names of a node list, in order.
func expandNodes(list string) ([]string, error) {
	var names []string
	for list != "" {
		end := endOfName(list)
		expanded, err := expandName(list[:end])
		if err != nil {
			return nil, err
		}
		names = append(names, expanded...)
		if len(names) > maxNodes {
			return nil, errTooManyNodes
		}
		if end == len(list) {
			return names, nil
		}
		list = list[end+1:]
	}
	return nil, errors.New("a name is missing: write names with commas between, as in node[001,007-015],host2")
}

// endOfName finds the first comma outside brackets, or the end.
func endOfName(list string) int {
	inside := false
	for i := range len(list) {
		switch list[i] {
		case '[':
			inside = true
		case ']':
			inside = false
		case ',':
			if !inside {
				return i
			}
		}
	}
	return len(list)
}

// expandName multiplies out the brackets of one name, from left to right.
func expandName(name string) ([]string, error) {
	if strings.Count(name, "[") > maxBrackets {
		return nil, fmt.Errorf("%q: more than %d brackets", name, maxBrackets)
	}
	names := []string{""}
	for rest := name; rest != ""; {
		plain, bracket, found := strings.Cut(rest, "[")
		if err := checkNamePart(plain, name); err != nil {
			return nil, err
		}
		values := []string{""}
		rest = ""
		if found {
			ranges, after, closed := strings.Cut(bracket, "]")
			if !closed {
				return nil, fmt.Errorf("%q: a bracket is not closed", name)
			}
			var err error
			values, err = expandRanges(ranges)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", name, err)
			}
			rest = after
		}
		if len(names)*len(values) > maxNodes {
			return nil, errTooManyNodes
		}
		names = multiply(names, plain, values)
	}
	for _, n := range names {
		if n == "" || len(n) > maxNodeName {
			return nil, fmt.Errorf("%q: a name must have 1 to %d letters", name, maxNodeName)
		}
	}
	return names, nil
}

func multiply(names []string, plain string, values []string) []string {
	product := make([]string, 0, len(names)*len(values))
	for _, name := range names {
		for _, value := range values {
			product = append(product, name+plain+value)
		}
	}
	return product
}

// checkNamePart accepts what host names are made of.
func checkNamePart(part, name string) error {
	for _, r := range part {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_', r == '.':
		default:
			return fmt.Errorf("%q: %q is not part of a host's name", name, r)
		}
	}
	return nil
}

// expandRanges expands 001,007-009. Numbers are as wide as their range's first.
func expandRanges(ranges string) ([]string, error) {
	var values []string
	for part := range strings.SplitSeq(ranges, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		first, ok := nodeNumber(low)
		last, ok2 := nodeNumber(high)
		if !ok || !ok2 || first > last {
			return nil, fmt.Errorf("%q is not a range of numbers: write 7 or 007-015", part)
		}
		if last-first >= uint64(maxNodes-len(values)) {
			return nil, errTooManyNodes
		}
		for n := first; n <= last; n++ {
			values = append(values, fmt.Sprintf("%0*d", len(low), n))
		}
	}
	return values, nil
}

// nodeNumber takes digits only: no sign.
func nodeNumber(text string) (uint64, bool) {
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil && len(text) <= maxNodeDigits
}
