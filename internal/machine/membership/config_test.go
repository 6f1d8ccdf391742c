package membership

import (
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// A member without a log, that is not in its own view, or that would wait for less than no time
// is refused.
func TestConfigIsChecked(t *testing.T) {
	for what, change := range map[string]func(*Config){
		"":                  func(*Config) {},
		"! no log":          func(c *Config) { c.Log = nil },
		"! no members":      func(c *Config) { c.View.Members = Members{} },
		"! another rank":    func(c *Config) { c.Self.Rank = 7 },
		"! another process": func(c *Config) { c.Self.Incarnation++ },
		"! a negative time": func(c *Config) { c.AckTimeout = -1 },
	} {
		v := firstView(3)
		c := Config{Self: *v.Members.At(1), View: v, Log: forgetfulLog{}}
		change(&c)
		if _, err := New(c); (err != nil) != (what != "") {
			t.Errorf("%q: %v", what, err)
		}
	}
}

// The first attempt waits a fifth of AttemptTimeout, and a fifth more for each doubling of the
// group beyond 64, but no longer than other attempts.
func TestFirstAttemptTimeout(t *testing.T) {
	c := Config{AttemptTimeout: 5 * second}
	for members, want := range map[int]protocol.Time{
		1: 1, 64: 1, 65: 2, 128: 2, 129: 3, 256: 3, 257: 4, 513: 5, 1024: 5,
		65536: 5,
	} {
		if got := c.firstAttemptTimeout(members); got != want*second {
			t.Errorf("%d members: %d s, want %d", members, got/second, want)
		}
	}
}
