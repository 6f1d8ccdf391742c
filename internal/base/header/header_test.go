package header

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawPairs draws pairs of which each alone is allowed.
func drawPairs(t *rapid.T) map[string]string {
	value := rapid.StringOfN(rapid.RuneFrom([]rune("az09 =;,é世")), 0, 60, 200)
	return rapid.MapOfN(rapid.StringMatching(`[a-z0-9._-]{1,40}`), value, 0, MaxKeys+3).Draw(t, "pairs")
}

// Every header within the limits is decoded as it was encoded, and no other one is encoded.
func TestHeadersRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pairs := drawPairs(t)
		size := 0
		for key, value := range pairs {
			size += 3 + len(key) + len(value)
		}
		e, err := Encode(pairs)
		if fits := len(pairs) <= MaxKeys && size <= MaxBytes; fits != (err == nil) {
			t.Fatalf("%d pairs of %d bytes: %v", len(pairs), size, err)
		}
		if err != nil {
			return
		}
		if len(e) != size || Valid([]byte(e)) != (len(pairs) > 0) || !maps.Equal(e.Map(), pairs) {
			t.Fatalf("%q has become %q", pairs, e.Map())
		}
	})
}

// What a header has at most, and pairs that are not allowed, are errors that name the key.
func TestLimits(t *testing.T) {
	many := map[string]string{}
	for i := range MaxKeys {
		many[fmt.Sprint(i)] = ""
	}
	exact := map[string]string{"k": strings.Repeat("v", MaxBytes-pairSize-1)}
	for _, pairs := range []map[string]string{nil, many, exact, {strings.Repeat("k", MaxKey): "\u00a0"}} {
		if _, err := Encode(pairs); err != nil {
			t.Errorf("%d pairs: %v", len(pairs), err)
		}
	}
	many["one-more"] = ""
	for key, pairs := range map[string]map[string]string{
		"":                            many,
		"longer":                      {"longer": exact["k"]},
		"Upper":                       {"Upper": ""},
		"a b":                         {"a b": ""},
		"é":                           {"é": ""},
		"line":                        {"line": "a\nb"},
		"bytes":                       {"bytes": "\xff"},
		strings.Repeat("k", MaxKey+1): {strings.Repeat("k", MaxKey+1): ""},
	} {
		_, err := Encode(pairs)
		flaw := new(Error)
		if whole := key == "longer"; !errors.As(err, &flaw) || flaw.Key != key && !whole || flaw.Error() == "" {
			t.Errorf("%.20q: %v", key, err)
		}
	}
	if _, err := Encode(map[string]string{"": "x"}); err == nil {
		t.Error("an empty key is allowed")
	}
}

// A context adds pairs to those that it has, carries the error of a header that is not allowed, and
// can be without.
func TestContext(t *testing.T) {
	pairs := map[string]string{"a": "1", "b": "2"}
	ctx := With(t.Context(), pairs)
	pairs["a"] = "changed"
	more := With(ctx, map[string]string{"b": "3"})
	for _, c := range []struct {
		ctx  context.Context
		want map[string]string
	}{
		{t.Context(), nil},
		{ctx, map[string]string{"a": "1", "b": "2"}},
		{more, map[string]string{"a": "1", "b": "3"}},
		{Without(more), nil},
		{With(Without(more), map[string]string{"c": ""}), map[string]string{"c": ""}},
		{With(t.Context(), nil), nil},
	} {
		e, err := Of(c.ctx)
		if err != nil || !maps.Equal(e.Map(), c.want) {
			t.Errorf("%q, %v, want %q", e.Map(), err, c.want)
		}
	}
	if Without(t.Context()) != t.Context() {
		t.Error("a context without a header becomes another one")
	}
	if e, err := Of(With(ctx, map[string]string{"A": ""})); e != "" || !errors.As(err, new(*Error)) {
		t.Errorf("%q, %v", e, err)
	}
}

// FuzzValid reads any bytes. What is valid is what its pairs are encoded as.
func FuzzValid(f *testing.F) {
	for _, pairs := range []map[string]string{{"traceparent": "00-11-22-01"}, {"a": "", "b": "é"}} {
		e, _ := Encode(pairs)
		f.Add([]byte(e))
	}
	f.Add([]byte("\x01b\x00\x00\x01a\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		pairs := Encoded(b).Map()
		if !Valid(b) {
			return
		}
		if e, err := Encode(pairs); err != nil || string(e) != string(b) {
			t.Fatalf("%q is valid, and its pairs are encoded as %q, %v", b, e, err)
		}
	})
}
