// Package header implements the key–value pairs that a message or a request carries besides its
// data: their limits, their encoding, and how they travel in a context to the call that sends
// them.
package header

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a header. MaxBytes is that of its encoding, in which a pair takes pairSize bytes more
// than its key and its value.
const (
	MaxBytes = 1024
	MaxKeys  = 32
	MaxKey   = 128

	pairSize = 1 + 2
)

// Encoded is an encoded header: for each pair, in ascending order of the keys, the length of the
// key in a byte, the key, the length of the value in two bytes, big endian, and the value. Without
// pairs it is empty.
type Encoded string

// Error means that a header has a pair that is not allowed, or too much.
type Error struct {
	// Key is the key of the pair. It is empty if the header as a whole is too much.
	Key string
	// Reason says what is wrong.
	Reason string
}

func (e *Error) Error() string {
	if e.Key == "" {
		return "header: " + e.Reason
	}
	return fmt.Sprintf("header %.64q: %s", e.Key, e.Reason)
}

// Encode encodes a header. The error is an [*Error].
func Encode(pairs map[string]string) (Encoded, error) {
	if len(pairs) == 0 {
		return "", nil
	}
	if len(pairs) > MaxKeys {
		return "", &Error{Reason: fmt.Sprintf("%d keys, of at most %d", len(pairs), MaxKeys)}
	}
	size := 0
	for key, value := range pairs {
		if reason := flaw(key, value); reason != "" {
			return "", &Error{Key: key, Reason: reason}
		}
		size += pairSize + len(key) + len(value)
	}
	if size > MaxBytes {
		return "", &Error{Reason: fmt.Sprintf("%d bytes, of at most %d: each pair counts %d more than its key and value",
			size, MaxBytes, pairSize)}
	}
	b := make([]byte, 0, size)
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		b = append(append(b, byte(len(key))), key...)
		b = binary.BigEndian.AppendUint16(b, uint16(len(pairs[key])))
		b = append(b, pairs[key]...)
	}
	return Encoded(b), nil
}

// flaw returns why a pair is not allowed, or "". Keys have one case, since they become names of
// HTTP fields and of environment variables.
func flaw(key, value string) string {
	switch {
	case key == "" || len(key) > MaxKey:
		return fmt.Sprintf("a key has 1 to %d bytes", MaxKey)
	case strings.IndexFunc(key, notInKey) >= 0:
		return `a key has lower-case letters, digits, "-", "_" and "."`
	case !utf8.ValidString(value) || strings.IndexFunc(value, unicode.IsControl) >= 0:
		return "a value is UTF-8 without control characters"
	}
	return ""
}

func notInKey(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
}

// Valid reports whether bytes are an encoded header with at least one pair.
func Valid(b []byte) bool {
	if len(b) == 0 || len(b) > MaxBytes {
		return false
	}
	last := ""
	for s, count := string(b), 1; s != ""; count++ {
		key, value, rest, ok := next(s)
		if !ok || count > MaxKeys || key <= last || flaw(key, value) != "" {
			return false
		}
		last, s = key, rest
	}
	return true
}

// next splits off the first pair.
func next(s string) (key, value, rest string, ok bool) {
	if len(s) == 0 || len(s) < pairSize+int(s[0]) {
		return "", "", "", false
	}
	key, s = s[1:1+int(s[0])], s[1+int(s[0]):]
	size := int(s[0])<<8 | int(s[1])
	s = s[2:]
	if len(s) < size {
		return "", "", "", false
	}
	return key, s[:size], s[size:], true
}

// Map returns the pairs of a valid header, or nil if there are none.
func (e Encoded) Map() map[string]string {
	if e == "" {
		return nil
	}
	return e.decode()
}

// decode decodes a header that is not empty.
func (e Encoded) decode() map[string]string {
	pairs := make(map[string]string)
	for s := string(e); s != ""; {
		key, value, rest, ok := next(s)
		if !ok {
			break // it is not valid
		}
		pairs[key], s = value, rest
	}
	return pairs
}

type contextKey struct{}

// outgoing is what a context carries.
type outgoing struct {
	pairs   map[string]string
	encoded Encoded
	err     error
}

// With returns a context with the pairs of a header, and those that ctx has already. Of one key,
// the new value counts.
func With(ctx context.Context, pairs map[string]string) context.Context {
	all := make(map[string]string)
	if before, _ := ctx.Value(contextKey{}).(*outgoing); before != nil {
		maps.Copy(all, before.pairs)
	}
	maps.Copy(all, pairs)
	encoded, err := Encode(all)
	return context.WithValue(ctx, contextKey{}, &outgoing{all, encoded, err})
}

// Of returns the header that ctx carries, or the [*Error] for which it cannot be sent.
func Of(ctx context.Context) (Encoded, error) {
	if o, _ := ctx.Value(contextKey{}).(*outgoing); o != nil {
		return o.encoded, o.err
	}
	return "", nil
}

// Pairs returns the pairs that ctx carries, even if they cannot be sent. They must not be changed.
func Pairs(ctx context.Context) map[string]string {
	if o, _ := ctx.Value(contextKey{}).(*outgoing); o != nil {
		return o.pairs
	}
	return nil
}

// Without returns a context without a header, for the messages that a service sends for its own.
func Without(ctx context.Context) context.Context {
	if o, _ := ctx.Value(contextKey{}).(*outgoing); o == nil {
		return ctx
	}
	return context.WithValue(ctx, contextKey{}, (*outgoing)(nil))
}
