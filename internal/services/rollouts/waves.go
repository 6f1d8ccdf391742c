package rollouts

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const maxWaves = 100 // of a rollout

// Size is how many members have the payload when a wave is over, those of the waves before included.
type Size struct {
	Count   int `json:"count,omitempty"`
	Percent int `json:"percent,omitempty"` // rounded up; 0: Count is the size
}

// of returns the size in a group of n.
func (s Size) of(n int) int {
	if s.Percent > 0 {
		return (n*s.Percent + 99) / 100
	}
	return min(s.Count, n)
}

// String returns the size as ParseWaves reads it.
func (s Size) String() string {
	if s.Percent > 0 {
		return fmt.Sprint(s.Percent, "%")
	}
	return strconv.Itoa(s.Count)
}

// ParseWaves reads the sizes of waves, as in "1,10%,50%,100%".
func ParseWaves(text string) ([]Size, error) {
	var sizes []Size
	for word := range strings.SplitSeq(text, ",") {
		number, percent := strings.CutSuffix(strings.TrimSpace(word), "%")
		n, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("%q is not the size of a wave: write a number of members, or 10%%", word)
		}
		s := Size{Count: n}
		if percent {
			s = Size{Percent: n}
		}
		sizes = append(sizes, s)
	}
	return sizes, CheckWaves(sizes)
}

// CheckWaves returns an error if sizes are not those of waves.
func CheckWaves(sizes []Size) error {
	for _, s := range sizes {
		if s.Count < 0 || s.Percent < 0 || s.Percent > 100 || (s.Count == 0) == (s.Percent == 0) {
			return fmt.Errorf("%v is not the size of a wave: at least 1 member, or 1%% to 100%%", s)
		}
	}
	if len(sizes) > maxWaves {
		return fmt.Errorf("%d waves are too many: %d at most", len(sizes), maxWaves)
	}
	if len(sizes) == 0 || sizes[len(sizes)-1].Percent != 100 {
		return errors.New("the last wave must be 100%")
	}
	return nil
}

// assign returns the members of a view by waves. A wave that adds nobody is left out.
func assign(v *View, sizes []Size, byDomain bool) (members []Member, last int) {
	units := spread(v, byDomain)
	released := 0
	for _, s := range sizes {
		n := s.of(len(units))
		if n <= released {
			continue
		}
		last++
		for _, unit := range units[released:n] {
			for _, i := range unit {
				members = append(members, Member{
					Process: v.Members[i], Domain: v.domain(i), Wave: last, State: Waiting,
				})
			}
		}
		released = n
	}
	return members, last
}

// domain returns the failure domain of a member.
func (v *View) domain(i int) string {
	if i < len(v.Domains) {
		return v.Domains[i]
	}
	return ""
}

// spread returns the indices of members in the order in which they get a payload: one member of each
// failure domain in turn, or all members of a domain together.
func spread(v *View, byDomain bool) (units [][]int) {
	of := make(map[string][]int)
	var names []string
	for i := range v.Members {
		name := v.domain(i)
		if of[name] == nil {
			names = append(names, name)
		}
		of[name] = append(of[name], i)
	}
	slices.Sort(names)
	if byDomain {
		for _, name := range names {
			units = append(units, of[name])
		}
		return units
	}
	for turn := 0; len(units) < len(v.Members); turn++ {
		for _, name := range names {
			if turn < len(of[name]) {
				units = append(units, []int{of[name][turn]})
			}
		}
	}
	return units
}
