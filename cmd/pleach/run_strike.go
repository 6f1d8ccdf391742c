package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// strike is what happens to a process on purpose, some time after the start.
type strike struct {
	kind  strikeKind
	rank  int
	at    time.Duration
	lasts time.Duration // of a stop; 0 is for good
}

type strikeKind string

const (
	strikeKill     strikeKind = "--kill"
	strikeStop     strikeKind = "--stop"
	strikeContinue strikeKind = "end of --stop"
)

// String writes the strike as its flag has it.
func (s strike) String() string {
	text := fmt.Sprintf("%s %d@%v", s.kind, s.rank, s.at)
	if s.lasts > 0 {
		text += fmt.Sprintf("+%v", s.lasts)
	}
	return text
}

// parseStrike reads RANK@DURATION, and for a stop +DURATION behind it.
func parseStrike(kind strikeKind, text string) (strike, error) {
	form := "RANK@DURATION, as in 3@2s"
	if kind == strikeStop {
		form = "RANK@DURATION[+DURATION], as in 3@2s or 3@2s+500ms"
	}
	wrong := func(problem string) (strike, error) {
		return strike{}, fmt.Errorf("%s %s: %s: write %s", kind, text, problem, form)
	}
	rank, after, ok := strings.Cut(text, "@")
	if !ok {
		return wrong("there is no @")
	}
	at, lasts, limited := strings.Cut(after, "+")
	if limited && kind != strikeStop {
		return wrong("only a stop has an end")
	}
	s := strike{kind: kind}
	n, err := strconv.ParseUint(rank, 10, 31)
	if err != nil {
		return wrong(fmt.Sprintf("%q is not a rank", rank))
	}
	s.rank = int(n)
	if s.at, err = parseMoment(at); err != nil {
		return wrong(err.Error())
	}
	if limited {
		if s.lasts, err = parseMoment(lasts); err != nil {
			return wrong(err.Error())
		}
		if s.lasts == 0 {
			return wrong("a stop for no time is none")
		}
	}
	return s, nil
}

func parseMoment(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration", text)
	}
	if d < 0 || d > maxStrike {
		return 0, fmt.Errorf("%s is not between 0s and %v", text, maxStrike)
	}
	return d, nil
}
