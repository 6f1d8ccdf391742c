package launch

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxFaultTime bounds when a fault is injected and how long it lasts: a longer
// time is a typing error.
const MaxFaultTime = 24 * time.Hour

// Fault is a failure that is injected into a process, some time after the start.
type Fault struct {
	Kind FaultKind
	Rank int
	At   time.Duration
	// Lasts is how long a stop lasts. If zero, for good.
	Lasts time.Duration
}

// FaultKind is a flag of pleach run.
type FaultKind string

// The faults there are. A resume is the end of a stop; [Schedule] adds it.
const (
	FaultKill   FaultKind = "--kill"
	FaultStop   FaultKind = "--stop"
	FaultResume FaultKind = "end of --stop"
)

// String writes the fault as its flag has it.
func (f Fault) String() string {
	text := fmt.Sprintf("%s %d@%v", f.Kind, f.Rank, f.At)
	if f.Lasts > 0 {
		text += fmt.Sprintf("+%v", f.Lasts)
	}
	return text
}

// ParseFault reads RANK@DURATION, and for a stop an optional +DURATION behind it.
func ParseFault(kind FaultKind, text string) (Fault, error) {
	form := "RANK@DURATION, as in 3@2s"
	if kind == FaultStop {
		form = "RANK@DURATION[+DURATION], as in 3@2s or 3@2s+500ms"
	}
	wrong := func(problem string) (Fault, error) {
		return Fault{}, fmt.Errorf("%s %s: %s: write %s", kind, text, problem, form)
	}
	rank, after, ok := strings.Cut(text, "@")
	if !ok {
		return wrong("there is no @")
	}
	at, lasts, limited := strings.Cut(after, "+")
	if limited && kind != FaultStop {
		return wrong("only a stop has an end")
	}
	f := Fault{Kind: kind}
	n, err := strconv.ParseUint(rank, 10, 31)
	if err != nil {
		return wrong(fmt.Sprintf("%q is not a rank", rank))
	}
	f.Rank = int(n)
	if f.At, err = parseTime(at); err != nil {
		return wrong(err.Error())
	}
	if limited {
		if f.Lasts, err = parseTime(lasts); err != nil {
			return wrong(err.Error())
		}
		if f.Lasts == 0 {
			return wrong("a stop for no time is none")
		}
	}
	return f, nil
}

func parseTime(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration", text)
	}
	if d < 0 || d > MaxFaultTime {
		return 0, fmt.Errorf("%s is not between 0s and %v", text, MaxFaultTime)
	}
	return d, nil
}

// Schedule reads the faults of --kill and --stop for a job of so many ranks, and
// returns them in order of time, together with the ends of stops.
func Schedule(size int, kill, stop []string) ([]Fault, error) {
	var all []Fault
	for _, flag := range []struct {
		kind  FaultKind
		texts []string
	}{{FaultKill, kill}, {FaultStop, stop}} {
		for _, text := range flag.texts {
			f, err := ParseFault(flag.kind, text)
			if err != nil {
				return nil, err
			}
			if f.Rank >= size {
				return nil, fmt.Errorf("%v: %d is not one of the ranks 0 to %d", f, f.Rank, size-1)
			}
			all = append(all, f)
			if f.Lasts > 0 {
				all = append(all, Fault{Kind: FaultResume, Rank: f.Rank, At: f.At + f.Lasts})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return all, nil
}
