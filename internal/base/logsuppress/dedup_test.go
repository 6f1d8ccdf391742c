package logsuppress_test

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pleach-go/pleach/internal/base/logsuppress"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// reset is a connection reset, as seen from a port.
func reset(port int) error {
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
	return fmt.Errorf("request: %w", &net.OpError{
		Op: "read", Net: "tcp", Source: from, Addr: from,
		Err: errors.New("reset"),
	})
}

// expired is a certificate that was looked at at some time.
func expired(at string) error {
	return fmt.Errorf("tls: %w", x509.CertificateInvalidError{Reason: x509.Expired, Detail: "current time " + at +
		" is after 1"})
}

func TestChanged(t *testing.T) {
	var c logsuppress.Causes
	for i, step := range []struct {
		event    string
		cause    error
		repeated int
		changed  bool
	}{
		{"a", io.EOF, 0, true},
		{"a", io.EOF, 0, false},
		{"b", io.EOF, 0, true},
		{"a", io.EOF, 0, false},
		{"a", reset(1), 2, true},
		{"a", reset(2), 0, false}, // another port is no other cause
		{"a", io.EOF, 1, true},
		{"c", expired("2"), 0, true},
		{"c", expired("3"), 0, false}, // nor is another second
	} {
		if repeated, changed := c.Changed(step.event, step.cause); repeated != step.repeated || changed != step.changed {
			t.Errorf("step %d: %d, %v", i, repeated, changed)
		}
	}
	c.Forget("a")
	if _, changed := c.Changed("a", io.EOF); !changed {
		t.Error("a forgotten event is not new")
	}
}

func TestEventsAreBounded(t *testing.T) {
	var c logsuppress.Causes
	for i := range 1024 {
		c.Changed(fmt.Sprint(i), io.EOF)
	}
	if _, changed := c.Changed("one more", io.EOF); !changed {
		t.Error("one more is not new")
	}
	if _, changed := c.Changed("0", io.EOF); !changed {
		t.Error("all are still remembered")
	}
}

// What the other side chooses is not part of the class of a cause (case 94).
func TestClassIsNotTheCallers(t *testing.T) {
	for _, c := range [][2]string{
		{`group "shop", not "rv"`, `group "sh\"op] [x", not "rv"`},
		{
			"tls: client offered only unsupported versions: [303 a0a]",
			"tls: client offered only unsupported versions: [[302] 301 b0b]",
		},
		{"rank 7 is taken", "rank 1234 is taken"},
		{`unfinished "quote`, `unfinished "another quote`},
	} {
		if a, b := logsuppress.Class(errors.New(c[0])), logsuppress.Class(errors.New(c[1])); a != b || a == "" {
			t.Errorf("%q and %q: %q and %q", c[0], c[1], a, b)
		}
	}
	if a, b := logsuppress.Class(io.EOF), logsuppress.Class(io.ErrUnexpectedEOF); a == b {
		t.Errorf("two causes are of class %q", a)
	}
	if n := len(logsuppress.Class(errors.New(strings.Repeat("x", 1<<20)))); n > 1000 {
		t.Errorf("a class has %d bytes", n)
	}
}

// Others cause at most 6 lines in a second, whatever they say and wherever they come from. What
// they have not caused in time, they cause later.
func TestForeignLinesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f logsuppress.Foreign
		lines := make(map[int]int)
		for i := range 480 * 30 {
			cause := errors.New(strings.Repeat("x", 1+i%150)) // each has its own class
			if _, changed := f.Changed(fmt.Sprint("host ", i%1100), cause); changed {
				lines[i/480]++
			}
			testutil.Advance(time.Second / 480)
		}
		for second, n := range lines {
			if n > 6 {
				t.Errorf("%d lines in second %d", n, second)
			}
		}
		if len(lines) < 30 {
			t.Errorf("lines in %d seconds of 30", len(lines))
		}
		testutil.Advance(time.Second)
		if _, changed := f.Changed("another host", io.EOF); !changed {
			t.Error("a later event has no line")
		}
	})
}
