package dedup_test

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/pleach-go/pleach/internal/dedup"
)

// reset is a connection reset, as seen from a port.
func reset(port int) error {
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
	return fmt.Errorf("request: %w", &net.OpError{Op: "read", Net: "tcp", Source: from, Addr: from, Err: errors.New("reset")})
}

// expired is a certificate that was looked at at some time.
func expired(at string) error {
	return fmt.Errorf("tls: %w", x509.CertificateInvalidError{Reason: x509.Expired, Detail: "current time " + at + " is after 1"})
}

func TestChanged(t *testing.T) {
	var c dedup.Causes
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
	var c dedup.Causes
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
