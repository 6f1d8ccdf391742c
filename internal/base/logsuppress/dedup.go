// Package dedup keeps a log short while something is retried: an event is worth a
// line when the class of its cause changes, not each time it happens. Other processes
// choose what they send, so the class does not depend on what a cause quotes, and the lines
// that they can cause are bounded.
package logsuppress

import (
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"sync"
	"time"
	"unicode"
)

// maxKeys bounds the events that are remembered. Beyond it all are forgotten, and
// each is worth a line again.
const maxKeys = 1024

// Causes remembers the last cause of each event that this process causes itself, such as its
// own connections. The zero value is ready for use. Its methods are safe for concurrent use.
type Causes struct {
	mu   sync.Mutex
	last map[string]*entry
}

type entry struct {
	class    string
	repeated int // since the class was new
}

// Changed reports whether the class of the cause of an event differs from the last one. If so,
// repeated is how often the last class came again after it was new.
func (c *Causes) Changed(event string, cause error) (repeated int, changed bool) {
	return c.changed(event, cause, func() bool { return true })
}

// changed is Changed. A line that allow does not allow counts as a repetition, and the event is
// new again the next time.
func (c *Causes) changed(event string, cause error, allow func() bool) (repeated int, changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	class := Class(cause)
	e := c.last[event]
	if e != nil && e.class == class || !allow() {
		if e != nil {
			e.repeated++
		}
		return 0, false
	}
	if e != nil {
		repeated = e.repeated
	}
	if c.last == nil || len(c.last) >= maxKeys {
		c.last = make(map[string]*entry)
	}
	c.last[event] = &entry{class: class}
	return repeated, true
}

// Forget ends an event: if it comes again, it is new.
func (c *Causes) Forget(event string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, event)
}

// Foreign is [Causes] for events that other processes cause. However many sources and causes they
// invent, it allows at most 2 × foreignLines lines in any second. The zero value is ready for use.
type Foreign struct {
	causes Causes
	budget Budget
}

// foreignLines is how many lines others can cause at once, and how many in a second after that.
const foreignLines = 3

// Changed is [Causes.Changed]. It reports false while others have caused too many lines.
func (f *Foreign) Changed(event string, cause error) (repeated int, changed bool) {
	return f.causes.changed(event, cause, func() bool { return f.budget.Take(foreignLines, foreignLines) })
}

// Budget is an allowance that is refilled at a rate. The zero value is a full one.
type Budget struct {
	mu    sync.Mutex
	spent float64
	at    time.Time
}

// Take takes one of the allowance of burst, which gets rate of it back each second. It reports
// false if nothing is left.
func (b *Budget) Take(burst, rate float64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.spent = max(0, b.spent-rate*now.Sub(b.at).Seconds())
	b.at = now
	if b.spent+1 > burst {
		return false
	}
	b.spent++
	return true
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

// maxClass bounds what is remembered of a cause.
const maxClass = 200

// Class returns what a cause has in common with others of its kind: its text without what is
// quoted or in brackets, and without words that have digits.
func Class(err error) string {
	var b strings.Builder
	text := Text(err)
	for text != "" && b.Len() < maxClass {
		end := strings.IndexFunc(text, func(r rune) bool { return r == '"' || r == '[' || unicode.IsSpace(r) })
		switch {
		case end < 0:
			end = len(text)
		case end == 0 && text[0] == '"':
			text = text[quoted(text):]
			continue
		case end == 0 && text[0] == '[':
			text = text[bracketed(text):]
			continue
		case end == 0:
			end = len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
		}
		if word := text[:end]; !strings.ContainsAny(word, "0123456789") {
			b.WriteString(word)
		}
		text = text[end:]
	}
	return b.String()[:min(b.Len(), maxClass)]
}

// quoted is the length of the quoted text that a text begins with, as %q writes it.
func quoted(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// bracketed is the length of the text in brackets that a text begins with.
func bracketed(text string) int {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '[':
			depth++
		case ']':
			depth--
			if depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}
