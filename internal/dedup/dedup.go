// Package dedup keeps a log short while something is retried: an event is worth a
// line when its cause changes, not each time it happens.
package dedup

import (
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"sync"
)

// maxKeys bounds the events that are remembered. Beyond it all are forgotten, and
// each is worth a line again.
const maxKeys = 1024

// Causes remembers the last cause of each event. The zero value is ready for use. Its
// methods are safe for concurrent use.
type Causes struct {
	mu   sync.Mutex
	last map[string]*entry
}

type entry struct {
	cause    string
	repeated int // since the cause was new
}

// Changed reports whether the cause of an event differs from its last one. If so,
// repeated is how often the last cause came again after it was new.
func (c *Causes) Changed(event string, cause error) (repeated int, changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := Text(cause)
	e := c.last[event]
	if e != nil && e.cause == text {
		e.repeated++
		return 0, false
	}
	if e != nil {
		repeated = e.repeated
	}
	if c.last == nil || len(c.last) >= maxKeys {
		c.last = make(map[string]*entry)
	}
	c.last[event] = &entry{cause: text}
	return repeated, true
}

// Forget ends an event: if it comes again, it is new.
func (c *Causes) Forget(event string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, event)
}

// Text returns the text of an error without the ports of its connection and the time at
// which a certificate was looked at, which differ from one attempt to the next.
func Text(err error) string {
	text := err.Error()
	if expired := (x509.CertificateInvalidError{}); errors.As(err, &expired) && expired.Reason == x509.Expired {
		text = strings.ReplaceAll(text, expired.Detail, "expired")
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Err != nil {
		text = strings.ReplaceAll(text, op.Error(), op.Op+": "+op.Err.Error())
	}
	return text
}
