package launch

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxFaultTime bounds when a fault is injected and how long it lasts: a longer
// time is a typing error.
const MaxFaultTime = 24 * time.Hour

// Fault is a failure that is injected into a process: some time after the start, or
// when the process prints a certain line.
type Fault struct {
	Kind FaultKind
	Rank int
	At   time.Duration
	// Line is what the line matches. If nil, the fault comes at its time.
	Line *regexp.Regexp
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
	if f.Line != nil {
		text = fmt.Sprintf("%s %d@/%v/", f.Kind, f.Rank, f.Line)
	}
	if f.Lasts > 0 {
		text += fmt.Sprintf("+%v", f.Lasts)
	}
	return text
}

// ParseFault reads RANK@DURATION or RANK@/REGEXP/, and for a stop an optional +DURATION
// behind it.
func ParseFault(kind FaultKind, text string) (Fault, error) {
	form := "RANK@DURATION, as in 3@2s, or RANK@/REGEXP/, as in '3@/step 7/'"
	if kind == FaultStop {
		form = "RANK@DURATION[+DURATION], as in 3@2s or 3@2s+500ms, or RANK@/REGEXP/[+DURATION], as in '3@/step 7/+500ms'"
	}
	wrong := func(problem string) (Fault, error) {
		return Fault{}, fmt.Errorf("%s %s: %s: write %s", kind, text, problem, form)
	}
	rank, after, ok := strings.Cut(text, "@")
	if !ok {
		return wrong("there is no @")
	}
	f := Fault{Kind: kind}
	n, err := strconv.ParseUint(rank, 10, 31)
	if err != nil {
		return wrong(fmt.Sprintf("%q is not a rank", rank))
	}
	f.Rank = int(n)
	lasts, limited, err := f.parseWhen(after)
	if err != nil {
		return wrong(err.Error())
	}
	if limited && kind != FaultStop {
		return wrong("only a stop has an end")
	}
	if limited {
		f.Lasts, err = parseTime(lasts)
		if err != nil {
			return wrong(err.Error())
		}
		if f.Lasts == 0 {
			return wrong("a stop for no time is none")
		}
	}
	return f, nil
}

// parseWhen reads when the fault comes, and returns what is behind the + that may follow.
func (f *Fault) parseWhen(text string) (lasts string, limited bool, err error) {
	if !strings.HasPrefix(text, "/") {
		text, lasts, limited = strings.Cut(text, "+")
		f.At, err = parseTime(text)
		return lasts, limited, err
	}
	end := strings.LastIndexByte(text, '/') // a duration has none
	if end < 2 {
		return "", false, errors.New("there is no regular expression between two slashes")
	}
	f.Line, err = regexp.Compile(text[1:end])
	if err != nil {
		return "", false, err
	}
	text = text[end+1:]
	lasts, limited = strings.CutPrefix(text, "+")
	if !limited && text != "" {
		return "", false, fmt.Errorf("%q follows the regular expression", text)
	}
	return lasts, limited, nil
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
// returns them in order of time, together with the ends of stops. Those that wait for a
// line come first.
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
			if f.Lasts > 0 && f.Line == nil {
				all = append(all, Fault{Kind: FaultResume, Rank: f.Rank, At: f.At + f.Lasts})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return all, nil
}
