package control

import "testing"

// Case 64: which settings of two processes go together.
func TestCompareSettings(t *testing.T) {
	of := func(pairs ...string) (s Settings) {
		for i := 0; i < len(pairs); i += 2 {
			s = append(s, Setting{pairs[i], pairs[i+1]})
		}
		return s
	}
	for name, c := range map[string]struct {
		ours, theirs Settings
		differ       string
	}{
		"equal":                       {of("Shape", "binomial"), of("Shape", "binomial"), ""},
		"different":                   {of("Shape", "binomial"), of("Shape", "kary(2)"), "Shape"},
		"known at one side":           {of("Shape", "binomial"), nil, ""},
		"known at the other side":     {nil, of("Shape", "binomial"), ""},
		"both have an arbiter":        {of(Arbiter, "set"), of(Arbiter, "set"), ""},
		"only one has an arbiter":     {of(Arbiter, "set"), of("Shape", "binomial"), Arbiter},
		"the other has an arbiter":    {of("Shape", "binomial"), of(Arbiter, "set"), Arbiter},
		"candidates receive the same": {of(MaxMessage, "5"), of(MaxMessage, "5"), ""},
		"candidates differ":           {of(MaxMessage, "5"), of(MaxMessage, "6"), MaxMessage},
		"a joiner receives more":      {of(MaxMessage, "6"), of(MaxMessage, "5", GroupMaxMessage, "5 a"), ""},
		"a joiner receives enough":    {of(MaxMessage, "5"), of(MaxMessage, "6", GroupMaxMessage, "5 a"), ""},
		"a joiner receives less":      {of(MaxMessage, "4"), of(MaxMessage, "6", GroupMaxMessage, "5 a"), MaxMessage},
		"its member says the same":    {of(MaxMessage, "6", GroupMaxMessage, "5 a"), of(MaxMessage, "4"), MaxMessage},
		"a number that is none":       {of(MaxMessage, "six"), of(MaxMessage, "4"), ""},
		"intervals that fit": {
			of(HeartbeatInterval, "1s", SuspicionTimeout, "5s"),
			of(HeartbeatInterval, "300ms", SuspicionTimeout, "2s"), "",
		},
		"an interval that is long": {
			of(HeartbeatInterval, "1s", SuspicionTimeout, "5s"),
			of(HeartbeatInterval, "300ms", SuspicionTimeout, "1.5s"), HeartbeatInterval,
		},
		"a timeout that is short": {
			of(HeartbeatInterval, "300ms", SuspicionTimeout, "1.5s"),
			of(HeartbeatInterval, "1s", SuspicionTimeout, "5s"), SuspicionTimeout,
		},
		"silence is not suspected": {
			of(HeartbeatInterval, "1s", SuspicionTimeout, "0s"),
			of(HeartbeatInterval, "10s", SuspicionTimeout, "0s"), "",
		},
	} {
		d := c.ours.Compare(c.theirs, "b")
		if (d == nil) != (c.differ == "") || d != nil && (d.Setting != c.differ || d.ID != "b") {
			t.Errorf("%s: %v, want %q", name, d, c.differ)
		}
		if decoded, err := DecodeSettings(c.ours.Encode(nil)); err != nil || len(decoded) != len(c.ours) {
			t.Errorf("%s: decoded %v, %v", name, decoded, err)
		}
	}
	if _, err := DecodeSettings(make(Settings, MaxSettings+1).Encode(nil)); err == nil {
		t.Error("too many settings are accepted")
	}
}
