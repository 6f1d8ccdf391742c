package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/agent/api"
	"github.com/pleach-go/pleach/internal/agent/client"
	"github.com/pleach-go/pleach/internal/agent/retain"
	"github.com/pleach-go/pleach/internal/bench/broadcast"
	"github.com/pleach-go/pleach/internal/bench/collectives"
	"github.com/pleach-go/pleach/internal/bench/cp"
	"github.com/pleach-go/pleach/internal/bench/fleet"
	"github.com/pleach-go/pleach/internal/bench/restart"
	"github.com/pleach-go/pleach/internal/bench/scale"
	"github.com/pleach-go/pleach/internal/bench/sort"
	"github.com/pleach-go/pleach/internal/experiments/reproduce"
	"github.com/pleach-go/pleach/internal/experiments/tune"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/internal/ps"
	"github.com/pleach-go/pleach/internal/record"
	"github.com/pleach-go/pleach/internal/testutil"
	"github.com/pleach-go/pleach/internal/transfer"
	"github.com/pleach-go/pleach/logp"
)

// Scripts read what --json writes: its fields may not change with the code. The
// golden file has a line for each field of each command.
func TestGoldenJSONFields(t *testing.T) {
	written := map[string][]byte{
		"sim":         simJSON(t),
		"sim --zones": []byte(printed(t, "sim", "--zones", "2", "-P", "16", "--runs", "1", "--fail", "3", "--die", "5#3", "--json")),
		"sim --trace": writtenBy(t, func(w io.Writer) (err error) { logp.WriteTrace(w, &err)(filled[logp.Event]()); return err }),
		"tree":        []byte(printed(t, "tree", "-P", "4", "--fail", "1", "--json")),
		"tune":        tuneJSON(t),
		"reproduce":   writtenBy(t, func(w io.Writer) error { return reproduce.WriteClaims(w, filled[[]reproduce.Claim]()) }),
		"join":        joinJSON(t),
		"members":     writtenBy(t, func(w io.Writer) error { return json.NewEncoder(w).Encode(filled[viewJSON]()) }),
		"agent":       writtenBy(t, func(w io.Writer) error { newAgentLogger(w, true).Info("serving"); return nil }),
		"send":        sendJSON(t),
		"listen":      listenedJSON(t),
		"query": writtenBy(t, func(w io.Writer) error {
			a := filled[api.Answers]()
			return (&queryCommand{agentFlags{json: true}}).write(w, &a)
		}),
		"cp": writtenBy(t, func(w io.Writer) error {
			return (&agentFlags{json: true}).print(w, filled[transfer.Result](), "")
		}),
		"status": writtenBy(t, func(w io.Writer) error {
			s := filled[statusJSON]()
			return (&statusCommand{agentFlags: agentFlags{json: true}}).write(w, &s)
		}),
		"replay":          replayJSON(t),
		"trace":           writtenBy(t, func(w io.Writer) error { r := filled[traceJSON](); return (&traceCommand{json: true}).write(w, &r) }),
		"ps":              writtenBy(t, func(w io.Writer) error { s := filled[ps.Survey](); return (&psCommand{json: true}).write(w, &s) }),
		"bench broadcast": writtenBy(t, func(w io.Writer) error { return (&broadcastCommand{json: true}).write(w, filled[[]broadcast.Result]()) }),
		"bench stabilization": writtenBy(t, func(w io.Writer) error {
			return (&stabilizationCommand{json: true}).write(w, filled[stabilizationJSON]())
		}),
		"bench collectives": writtenBy(t, func(w io.Writer) error {
			return (&collectivesCommand{json: true}).write(w, filled[[]collectives.Result]())
		}),
		"bench collectives --choices": writtenBy(t, (&collectivesCommand{json: true, config: collectives.Config{Members: []int{8}}}).writeChoices),
		"bench fleet":                 writtenBy(t, func(w io.Writer) error { return (&fleetCommand{json: true}).write(w, &filled[[]fleet.Result]()[0]) }),
		"bench scale":                 writtenBy(t, func(w io.Writer) error { return (&scaleCommand{json: true}).write(w, filled[[]scale.Result]()) }),
		"sort":                        writtenBy(t, func(w io.Writer) error { r := filled[sortJSON](); return (&sortCommand{json: true}).write(w, &r) }),
		"bench sort": writtenBy(t, func(w io.Writer) error {
			r := filled[sort.Result]()
			return (&benchSortCommand{json: true}).write(w, &r)
		}),
		"bench cp": writtenBy(t, func(w io.Writer) error {
			r := filled[cp.Result]()
			return (&benchCpCommand{json: true}).write(w, &r)
		}),
		"raise-version": writtenBy(t, func(w io.Writer) error { return (&raiseVersionCommand{json: true}).write(w, filled[raiseJSON]()) }),
		"version":       writtenBy(t, func(w io.Writer) error { return filled[versionJSON]().write(w, true) }),
		"bench restart": writtenBy(t, func(w io.Writer) error { return (&restartCommand{json: true}).write(w, filled[restart.Result]()) }),
	}
	var lines []string
	for command, text := range written {
		for _, field := range fieldsOf(t, text) {
			lines = append(lines, command+": "+field)
		}
	}
	testutil.GoldenLines(t, "testdata/json-fields.golden", lines)
	for _, command := range commandsWithJSON(newRoot(), "") {
		if written[command] == nil {
			t.Errorf("the fields of pleach %s --json are not recorded", command)
		}
	}
}

// commandsWithJSON are those that have the flag, with all words but the first.
func commandsWithJSON(cmd *cobra.Command, path string) (names []string) {
	if cmd.Flags().Lookup("json") != nil {
		names = append(names, path)
	}
	for _, c := range cmd.Commands() {
		names = append(names, commandsWithJSON(c, strings.TrimSpace(path+" "+c.Name()))...)
	}
	return names
}

func writtenBy(t *testing.T, write func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// simJSON is runs that have all fields between them.
func simJSON(t *testing.T) (text []byte) {
	for _, args := range [][]string{
		{"--faults", "1", "--fail", "3", "--die", "5#3"},
		{"--dissemination", "gossip", "--gossip-rounds", "4"},
		{"--dissemination", "gossip", "--gossip-time", "9"},
		{"--start", "overlapped", "--correction", "optimized:2"},
	} {
		text = append(text, printed(t, append([]string{"sim", "-P", "16", "--runs", "1", "--json"}, args...)...)...)
	}
	return text
}

func tuneJSON(t *testing.T) []byte {
	return writtenBy(t, func(w io.Writer) error {
		cmd := &cobra.Command{}
		cmd.SetOut(w)
		q, a := filled[tune.Question](), filled[tune.Answer]()
		return (&tuneCommand{json: true}).writeJSON(cmd, &q, &a, &calibration{calls: collectiveCalibration{tasks: 8, hosts: 2}})
	})
}

// sendJSON is both replies of an agent.
func sendJSON(t *testing.T) []byte {
	a := &agentFlags{json: true}
	return writtenBy(t, func(w io.Writer) error {
		return errors.Join(a.print(w, filled[api.Receipt](), ""), a.print(w, filled[api.Sent](), ""))
	})
}

// listenedJSON is every kind of event.
func listenedJSON(t *testing.T) []byte {
	return writtenBy(t, func(w io.Writer) error {
		l := &listenCommand{agentFlags: agentFlags{json: true}, out: w}
		message, missed, gap := filled[api.Message](), filled[retain.Missed](), filled[api.Gap]()
		return errors.Join(l.event(t.Context(), &client.Event{ID: "e-1", Message: &message}),
			l.event(t.Context(), &client.Event{ID: "e-2", Missed: &missed}), l.event(t.Context(), &client.Event{ID: "e-3", Gap: &gap}))
	})
}

func replayJSON(t *testing.T) []byte {
	return writtenBy(t, func(w io.Writer) error {
		r := &replayCommand{json: true}
		if err := r.writeEvent(w, filled[record.Event]()); err != nil {
			return err
		}
		state := filled[record.State]()
		state.View.Members = membership.MembersOf(membership.Member{})
		return r.writeEnd(w, &record.Recording{}, &record.Result{State: state})
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

// filled returns a value none of whose fields is left out for being zero.
func filled[T any]() (v T) {
	fill(reflect.ValueOf(&v).Elem())
	return v
}

func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1, 0)))
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1.5)
	default:
		if v.CanInt() {
			v.SetInt(1)
		} else if v.CanUint() {
			v.SetUint(1)
		}
	}
}

// fieldsOf returns the names of all fields in one or several JSON values, as paths.
// Ranks that are names are all the same.
func fieldsOf(t *testing.T, text []byte) (fields []string) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var value any
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
			slices.Sort(fields)
			return slices.Compact(fields)
		} else if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		fields = appendFields(fields, "", value)
	}
}

func appendFields(fields []string, path string, value any) []string {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			if _, err := strconv.Atoi(name); err == nil {
				name = "RANK"
			}
			fields = appendFields(fields, path+"."+name, inner)
		}
	case []any:
		for _, inner := range v {
			fields = appendFields(fields, path+"[]", inner)
		}
		if len(v) == 0 {
			fields = append(fields, path+"[]")
		}
	default:
		fields = append(fields, fmt.Sprintf("%s %s", path, typeOfJSON(v)))
	}
	return fields
}

func typeOfJSON(value any) string {
	switch value.(type) {
	case string:
		return "string"
	case float64:
		return "number"
	case bool:
		return "boolean"
	}
	return "null"
}
