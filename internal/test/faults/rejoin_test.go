package faults

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// readerRole is the environment variable that makes this test binary a member that prints
// what it receives. Its value is a readerConfig.
const readerRole = "PLEACH_FAULTS_READER"

type readerConfig struct {
	Seed    string
	Handler bool // it receives by Config.OnMessage, and otherwise from Messages and a topic
}

func init() { testutil.PlayRole(readerRole, readerConfig.run) }

// run is the reader. It prints "ALL NUMBER" for a message without a topic, "TOPIC NUMBER" for
// one of the topic, and "ALL gap" or "TOPIC gap" where it is told of a gap.
func (r readerConfig) run() {
	ctx := context.Background()
	tell := func(stream string, m pleach.Message, err error) {
		text := string(m.Data)
		if gap, ok := errors.AsType[*pleach.GapError](err); ok {
			text = fmt.Sprintf("gap %d %d %v", gap.From, gap.To, gap.Err)
		}
		fmt.Println(stream, text)
	}
	c := pleach.Config{
		Group: "faults", ID: "reader", Recovery: pleach.Recovery{Rejoin: true}, Delivery: pleach.Delivery{
			Topics: []string{"topic"},
			Handlers: map[string]func(context.Context, pleach.Request) ([]byte, error){
				"echo": func(_ context.Context, r pleach.Request) ([]byte, error) { return r.Data, nil },
			},
		},
	}
	if r.Handler {
		c.Delivery.Topics, c.OnMessage = nil,
			func(m pleach.Message, err error) { tell(strings.ToUpper("all"+m.Topic), m, err) }
	}
	g, err := pleach.Join(ctx, c, r.Seed)
	if err != nil {
		fmt.Println("error", err)
		return
	}
	if !r.Handler {
		topic, err := g.Subscribe("topic")
		if err != nil {
			fmt.Println("error", err)
			return
		}
		print := func(stream string, messages iter.Seq2[pleach.Message, error]) {
			for m, err := range messages {
				tell(stream, m, err)
			}
		}
		go print("ALL", g.Messages(ctx))
		go print("TOPIC", topic.Messages(ctx))
	}
	fmt.Println("member", g.Rank())
	for v := range g.Views(ctx) {
		fmt.Println("view", v.Number, v.Err)
	}
	fmt.Println("ended", g.Err())
}

// Case 36: a member is evicted and comes back by itself. Its program is told of the gap before
// it reads on, in every stream, and its handlers are there.
func TestCase36EvictedProgramIsToldOfTheGap(t *testing.T) {
	for name, handler := range map[string]bool{"messages": false, "handler": true} {
		t.Run(name, func(t *testing.T) { evictReader(t, handler) })
	}
}

func evictReader(t *testing.T, handler bool) {
	groups := grow(t, 3, func(string) pleach.Config { return pleach.Config{} })
	reader := testutil.StartRole(t, readerRole, readerConfig{Seed: groups[0].Self().Address, Handler: handler})
	reader.Wait(t, "member")
	streams := []string{"ALL", "TOPIC"}
	if handler {
		streams[1] = "ALLTOPIC"
	}
	sent := 0
	send := func(count int) {
		for range count {
			text := []byte(strconv.Itoa(sent))
			if err := groups[0].Broadcast(t.Context(), text); err != nil {
				t.Fatal(err)
			}
			if err := groups[0].BroadcastTopic(t.Context(), "topic", text); err != nil {
				t.Fatal(err)
			}
			sent++
		}
	}
	send(5)
	for _, s := range streams {
		reader.Wait(t, s+" 4")
	}
	reader.Signal(syscall.SIGSTOP)
	views := func(size int) (v pleach.View) {
		for v = range groups[0].Views(t.Context()) {
			if v.Size() == size {
				break
			}
		}
		return v
	}
	views(3)
	send(20)
	began := time.Now()
	reader.Signal(syscall.SIGCONT)
	back := views(4)
	took := time.Since(began)
	send(5)
	for _, s := range streams {
		reader.Wait(t, s+" "+strconv.Itoa(sent-1))
	}
	member := back.Members()[slices.IndexFunc(back.Members(), func(m pleach.Member) bool { return m.ID == "reader" })]
	if reply, err := groups[0].Request(t.Context(), member, "echo", []byte("x")); err != nil || string(reply) != "x" {
		t.Errorf("request after the return: %q, %v", reply, err)
	}
	missed := 0
	for _, s := range streams {
		missed += checkGaps(t, reader.All(), s, sent, handler)
	}
	figures(t, map[string]any{"case": 36, "handler": handler, "missed": missed, "back_ms": took.Milliseconds()})
	if missed == 0 {
		t.Error("the reader has missed nothing: it was not evicted")
	}
}

// checkGaps checks that no messages are missing in a stream but after a notice, and returns
// how many are. All streams of a handler have one notice.
func checkGaps(t *testing.T, lines []string, stream string, sent int, handler bool) (missed int) {
	t.Helper()
	next, told := 0, 0
	for _, line := range lines {
		name, text, _ := strings.Cut(line, " ")
		switch number, err := strconv.Atoi(text); {
		case strings.HasPrefix(text, "gap") && (name == stream || handler):
			told++
		case name != stream:
		case err != nil:
			t.Fatalf("line %q", line)
		case number < next || number > next && told == 0:
			t.Errorf("%s %d follows %d, without a notice", stream, number, next-1)
			next = number + 1
		default:
			missed += number - next
			next = number + 1
		}
	}
	if next != sent || told != 1 {
		t.Errorf("%s: %d of %d messages, and %d notices", stream, next, sent, told)
	}
	return missed
}
