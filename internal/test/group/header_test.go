package group_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
)

// randomHeader draws a header within the limits, or none. Its pairs say the number of the message.
func randomHeader(rng *rand.Rand, number int) pleach.Header {
	h := pleach.Header{}
	for i := range rng.IntN(5) {
		h[fmt.Sprintf("key-%d.%d", number, i)] = strings.Repeat("é", rng.IntN(100))
	}
	if len(h) == 0 {
		return nil
	}
	return h
}

// headed is the data of a message of so many bytes at least that has a header.
func headed(h pleach.Header, size int) []byte {
	b, _ := json.Marshal(h)
	return append(append(b, '\n'), make([]byte, size)...)
}

// checkHeader compares the header that has arrived with the data that came with it.
func checkHeader(t *testing.T, got pleach.Header, data []byte) {
	t.Helper()
	var want pleach.Header
	text, _, _ := bytes.Cut(data, []byte("\n"))
	if err := json.Unmarshal(text, &want); err != nil || !maps.Equal(got, want) || (got == nil) != (want == nil) {
		t.Errorf("header %v, want %v (%v)", got, want, err)
	}
}

// Whatever header a message has, it arrives with that: broadcasts in bursts and alone, short and
// long, with a topic and without, messages to one member and requests.
func TestHeaders(t *testing.T) {
	const messages = 400
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	groups := service(t, 3, nil)
	var all sync.WaitGroup
	receive := func(g *pleach.Group) {
		topic := subscribe(t, g, "topic")
		var plain, topical sync.WaitGroup
		read, stop := context.WithCancel(ctx)
		got := make(chan pleach.Message, 2*messages)
		plain.Go(func() {
			for m := range g.Messages(read) {
				got <- m
			}
		})
		topical.Go(func() {
			for m := range topic.Messages(read) {
				got <- m
			}
		})
		all.Go(func() {
			for range messages {
				select {
				case m := <-got:
					checkHeader(t, m.Header, m.Data)
				case <-ctx.Done():
					t.Error("messages are missing")
				}
			}
			stop()
			plain.Wait()
			topical.Wait()
		})
	}
	for _, g := range groups[1:] {
		receive(g)
		g.Handle("check", func(ctx context.Context, r pleach.Request) ([]byte, error) {
			checkHeader(t, r.Header, r.Data)
			return nil, nil
		})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range messages {
		h, size := randomHeader(rng, i), []int{0, 10, 1000, 200_000}[rng.IntN(100)/33]
		with := ctx
		if h != nil {
			with = pleach.WithHeader(ctx, h)
		}
		var err error
		switch rng.IntN(4) {
		case 0:
			err = groups[0].BroadcastTopic(with, "topic", headed(h, size))
		case 1:
			for _, g := range groups[1:] {
				err = errors.Join(err, groups[0].Send(with, g.Self(), headed(h, size)))
			}
		default:
			err = groups[0].Broadcast(with, headed(h, size))
		}
		if i%10 == 0 {
			_, failed := groups[0].Request(with, groups[1].Self(), "check", headed(h, size))
			err = errors.Join(err, failed)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
}

// A header that is not allowed is an error of the call, names the key, and nothing is sent. The
// limits are exact.
func TestHeadersThatAreNotAllowed(t *testing.T) {
	groups := service(t, 2, nil)
	refused := map[string]pleach.Header{
		"":   {"longer": strings.Repeat("x", pleach.MaxHeaderBytes-3-len("longer")+1)},
		"No": {"No": ""},
	}
	for key, h := range refused {
		ctx := pleach.WithHeader(t.Context(), h)
		_, asked := groups[0].Request(ctx, groups[1].Self(), "any", nil)
		for call, err := range map[string]error{
			"Broadcast": groups[0].Broadcast(ctx, nil),
			"topic":     groups[0].BroadcastTopic(ctx, "topic", nil),
			"Send":      groups[0].Send(ctx, groups[1].Self(), nil),
			"Request":   asked,
			"Validate":  h.Validate(),
		} {
			if flaw := new(pleach.HeaderError); !errors.As(err, &flaw) || flaw.Key != key {
				t.Errorf("%s: %v, want a HeaderError of %q", call, err, key)
			}
		}
	}
	one := pleach.WithHeader(t.Context(), pleach.Header{"a": "1"})
	both := pleach.WithHeader(one, pleach.Header{"b": "2"})
	if h := pleach.HeaderOf(both); len(h) != 2 || pleach.HeaderOf(t.Context()) != nil {
		t.Errorf("a context has the header %v", h)
	}
	most := pleach.Header{"longest": strings.Repeat("x", pleach.MaxHeaderBytes-3-len("longest"))}
	if err := most.Validate(); err != nil {
		t.Error(err)
	}
	if err := groups[0].Broadcast(pleach.WithHeader(t.Context(), most), []byte("first")); err != nil {
		t.Fatal(err)
	}
	for m := range groups[1].Messages(t.Context()) {
		if string(m.Data) != "first" || !maps.Equal(m.Header, most) {
			t.Errorf("%q with %d keys", m.Data, len(m.Header))
		}
		break
	}
}

// A handler is not given the header in its context: what it sends has none unless it says so.
func TestHeaderIsNotPassedOn(t *testing.T) {
	groups := service(t, 2, nil)
	groups[1].Handle("relay", func(ctx context.Context, r pleach.Request) ([]byte, error) {
		return nil, errors.Join(
			groups[1].Send(ctx, groups[0].Self(), nil),
			groups[1].Send(pleach.WithHeader(ctx, r.Header), groups[0].Self(), nil),
		)
	})
	ctx := pleach.WithHeader(t.Context(), pleach.Header{"a": "1"})
	if _, err := groups[0].Request(ctx, groups[1].Self(), "relay", nil); err != nil {
		t.Fatal(err)
	}
	var got []pleach.Header
	for m := range groups[0].Messages(t.Context()) {
		got = append(got, m.Header)
		if len(got) == 2 {
			break
		}
	}
	if got[0] != nil || got[1]["a"] != "1" {
		t.Errorf("headers %v", got)
	}
}
