package launch

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestParseFault(t *testing.T) {
	for text, want := range map[string]Fault{
		"3@2s":         {Kind: FaultStop, Rank: 3, At: 2 * time.Second},
		"0@0":          {Kind: FaultStop},
		"3@1m+500ms":   {Kind: FaultStop, Rank: 3, At: time.Minute, Lasts: time.Second / 2},
		"4095@1.5h+1h": {Kind: FaultStop, Rank: 4095, At: 90 * time.Minute, Lasts: time.Hour},
		"3@/step 7/":   {Kind: FaultStop, Rank: 3, Line: regexp.MustCompile("step 7")},
		"3@/a@b/c+d/":  {Kind: FaultStop, Rank: 3, Line: regexp.MustCompile("a@b/c+d")},
		"3@/a/+1s":     {Kind: FaultStop, Rank: 3, Line: regexp.MustCompile("a"), Lasts: time.Second},
	} {
		if got, err := ParseFault(FaultStop, text); err != nil || !same(got, want) {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":               "there is no @",
		"3":              "there is no @",
		"@2s":            `"" is not a rank`,
		"-1@2s":          `"-1" is not a rank`,
		"99999999999@2s": "is not a rank",
		"3@":             `"" is not a duration`,
		"3@2":            `"2" is not a duration`,
		"3@-2s":          "-2s is not between 0s and 24h",
		"3@25h":          "25h is not between",
		"3@2s+":          `"" is not a duration`,
		"3@2s+0s":        "a stop for no time is none",
		"3@2s+1s+1s":     `"1s+1s" is not a duration`,
		"3@2s@1s":        `"2s@1s" is not a duration`,
		"3@//":           "there is no regular expression between two slashes",
		"3@/step 7":      "there is no regular expression between two slashes",
		"3@/a(/":         "missing closing ): `a(`",
		"3@/a/1s":        `"1s" follows the regular expression`,
		"3@/a/+":         `"" is not a duration`,
		"3@/a/+0s":       "a stop for no time is none",
	} {
		if got, err := ParseFault(FaultStop, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v, want %s", text, got, err, want)
		}
	}
}

// same compares faults, whose regular expressions are equal if their texts are.
func same(a, b Fault) bool {
	texts := a.String() == b.String()
	a.Line, b.Line = nil, nil
	return texts && a == b
}

// What happens comes in order of time, whatever the order of the flags.
func TestScheduleIsInOrder(t *testing.T) {
	var kill, stop []string
	for rank := range 50 {
		kill = append(kill, fmt.Sprintf("%d@%dms", rank, rand.IntN(100)))
		stop = append(stop, fmt.Sprintf("%d@%dms+%dms", 50+rank, rand.IntN(100), 1+rand.IntN(100)))
	}
	faults, err := Schedule(100, kill, stop)
	if err != nil || len(faults) != 150 {
		t.Fatalf("%d faults, %v", len(faults), err)
	}
	for i := range faults[1:] {
		if faults[i].At > faults[i+1].At {
			t.Errorf("%v is before %v", faults[i], faults[i+1])
		}
	}
}

// What is understood is bounded, and is written as it is read.
func FuzzParseFault(f *testing.F) {
	for _, text := range []string{
		"3@2s", "3@2s+500ms", "@", "3@1h2m3.4s", "+@+", "0@0+1ns", "3@/step [0-9]+/+1s",
		"3@/a/b/", "1@//",
	} {
		f.Add(text, true)
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, text string, stop bool) {
		kind := FaultKill
		if stop {
			kind = FaultStop
		}
		s, err := ParseFault(kind, text)
		if err != nil {
			return
		}
		if s.Rank < 0 || s.At < 0 || s.At > MaxFaultTime || s.Lasts < 0 || s.Lasts > MaxFaultTime || !stop && s.Lasts != 0 {
			t.Fatalf("%q: %+v", text, s)
		}
		again, err := ParseFault(kind, strings.TrimPrefix(s.String(), string(kind)+" "))
		if err != nil || !same(again, s) {
			t.Fatalf("%q: %v, again %v, %v", text, s, again, err)
		}
	})
}
