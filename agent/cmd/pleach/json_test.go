package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/agent/cli/clitest"
	"github.com/pleach-go/pleach/agent/client"
	"github.com/pleach-go/pleach/agent/ps"
	"github.com/pleach-go/pleach/agent/retention"
	"github.com/pleach-go/pleach/agent/transfer"
)

// Scripts read what --json writes.
func TestGoldenJSONFields(t *testing.T) {
	clitest.GoldenFields(t, newRoot(), map[string][]byte{
		"join": joinJSON(t),
		"members": clitest.WrittenBy(t,
			func(w io.Writer) error { return json.NewEncoder(w).Encode(clitest.Filled[viewJSON]()) }),
		"agent":  clitest.WrittenBy(t, func(w io.Writer) error { newAgentLogger(w, true).Info("serving"); return nil }),
		"send":   sendJSON(t),
		"listen": listenedJSON(t),
		"query": clitest.WrittenBy(t, func(w io.Writer) error {
			a := clitest.Filled[api.Answers]()
			return (&queryCommand{agentFlags: agentFlags{json: true}}).write(w, &a)
		}),
		"cp": clitest.WrittenBy(t, func(w io.Writer) error {
			return (&agentFlags{json: true}).print(w, clitest.Filled[transfer.Result](), "")
		}),
		"status": clitest.WrittenBy(t, func(w io.Writer) error {
			s := clitest.Filled[statusJSON]()
			return (&statusCommand{agentFlags: agentFlags{json: true}}).write(w, &s, nil)
		}),
		"trace": clitest.WrittenBy(t, func(w io.Writer) error {
			r := clitest.Filled[traceJSON]()
			return (&traceCommand{json: true}).write(w, &r)
		}),
		"ps": clitest.WrittenBy(t, func(w io.Writer) error {
			s := clitest.Filled[ps.Survey]()
			return (&psCommand{json: true}).write(w, &s)
		}),
		"sort": clitest.WrittenBy(t, func(w io.Writer) error {
			r := clitest.Filled[sortJSON]()
			return (&sortCommand{json: true}).write(w, &r)
		}),
		"raise-version": clitest.WrittenBy(t, func(w io.Writer) error {
			return (&raiseVersionCommand{json: true}).write(w, clitest.Filled[raiseJSON]())
		}),
		"lock": clitest.WrittenBy(t, func(w io.Writer) error {
			return json.NewEncoder(w).Encode(clitest.Filled[lockJSON]())
		}),
		"rollout list":   keyJSON(t, clitest.Filled[api.RolloutList]()),
		"rollout status": keyJSON(t, clitest.Filled[api.Rollout]()),
		"rollout pause":  keyJSON(t, clitest.Filled[api.Rollout]()),
		"rollout resume": keyJSON(t, clitest.Filled[api.Rollout]()),
		"rollout stop":   keyJSON(t, clitest.Filled[api.Rollout]()),
		"rollout revert": keyJSON(t, clitest.Filled[api.Rollout]()),

		"kv get":    keyJSON(t, clitest.Filled[api.Entry]()),
		"kv put":    keyJSON(t, clitest.Filled[api.Changed]()),
		"kv delete": keyJSON(t, clitest.Filled[api.Changed]()),
		"kv watch":  keyJSON(t, clitest.Filled[api.Change]()),
		"kv list": clitest.WrittenBy(t, func(w io.Writer) error {
			list := clitest.Filled[api.Entries]()
			return (&kvCommand{agentFlags: agentFlags{json: true}}).writeList(w, &list)
		}),
		"version": clitest.WrittenBy(t,
			func(w io.Writer) error { return json.NewEncoder(w).Encode(clitest.Filled[cli.Build]()) }),
	})
}

func keyJSON(t *testing.T, object any) []byte {
	return clitest.WrittenBy(t, func(w io.Writer) error { return (&agentFlags{json: true}).print(w, object, "") })
}

// sendJSON is the replies of an agent.
func sendJSON(t *testing.T) []byte {
	a := &agentFlags{json: true}
	return clitest.WrittenBy(t, func(w io.Writer) error {
		return errors.Join(a.print(w, clitest.Filled[api.Receipt](), ""), a.print(w, clitest.Filled[api.Sent](), ""),
			a.print(w, clitest.Filled[api.Rollout](), ""))
	})
}

// listenedJSON is every kind of event.
func listenedJSON(t *testing.T) []byte {
	return clitest.WrittenBy(t, func(w io.Writer) error {
		l := &listenCommand{agentFlags: agentFlags{json: true}, out: w}
		message, missed, gap := clitest.Filled[api.Message](), clitest.Filled[retention.Missed](), clitest.Filled[api.Gap]()
		return errors.Join(l.event(t.Context(), &client.Event{ID: "e-1", Message: &message}),
			l.event(t.Context(), &client.Event{ID: "e-2", Missed: &missed}),
			l.event(t.Context(), &client.Event{ID: "e-3", Gap: &gap}))
	})
}

// joinJSON is a process that joins another one, hears it, and leaves.
func joinJSON(t *testing.T) []byte {
	ctx, leave := context.WithTimeout(t.Context(), time.Minute)
	defer leave()
	g, err := pleach.Create(ctx, pleach.Config{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	go func() {
		for view := range g.Views(ctx) {
			if view.Size() == 2 {
				_ = g.Broadcast(ctx, []byte("hello"))
			}
		}
	}()
	out := &joinOutput{leave: leave}
	cmd := newJoin()
	cmd.SetArgs([]string{g.View().Leader().Address, "--json", "--failure-domain", "rack"})
	cmd.SetIn(strings.NewReader(""))
	cmd.SetOut(out)
	cmd.SetErr(io.Discard)
	if err := cmd.ExecuteContext(ctx); err != nil {
		t.Fatal(err)
	}
	return out.text.Bytes()
}

// joinOutput leaves the group when a message has come.
type joinOutput struct {
	mu    sync.Mutex
	text  bytes.Buffer
	leave func()
}

func (o *joinOutput) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if bytes.Contains(b, []byte("hello")) {
		o.leave()
	}
	return o.text.Write(b)
}
