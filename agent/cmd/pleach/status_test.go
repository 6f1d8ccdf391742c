package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// screenOf is a group of n members and a hole: rank 1 is suspected, and rank 3 lags.
func screenOf(n int) *statusScreen {
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	s := &statusScreen{}
	s.Status.Status = pleach.Status{
		Time: now, Group: "web", Rank: 0, ID: "web0", View: 9, Members: n,
		Quorum: pleach.Quorum{Reachable: n - 1, Needed: n/2 + 1, OK: true},
		Suspects: []pleach.Suspect{{
			Rank: 1, ID: "web1", Since: now.Add(-1200 * time.Millisecond), By: []int{0, 4},
			Cause: "its process is gone: " + strings.Repeat("connection refused ", 5),
		}},
	}
	s.Status.Agent = api.AgentStatus{Version: "v1.2.3", Began: now.Add(-3 * time.Hour), Retained: 12}
	s.Members = api.Members{View: 9, Slots: n + 1}
	for rank := range n {
		m := api.Member{
			MemberRef: api.MemberRef{Rank: rank, ID: fmt.Sprintf("web%d", rank)}, State: api.Alive,
			Address:       fmt.Sprintf("10.0.%d.%d:7000", rank/256, rank%256),
			FailureDomain: fmt.Sprintf("zone-%c", 'a'+rank%3), Meta: "pleach=v1.2.3 role=front",
		}
		peer := pleach.PeerStatus{Rank: rank, Connected: rank < 5}
		switch rank {
		case 0:
			m.Since = now.Add(-3 * time.Hour)
		case 1:
			m.State, m.SuspectedSince, m.Since = api.Suspected, now.Add(-1200*time.Millisecond), now.Add(-70*time.Minute)
		case 3:
			peer.Lag = 200
		}
		s.Members.Members = append(s.Members.Members, m)
		s.Status.Peers = append(s.Status.Peers, peer)
	}
	for i := range 20 {
		s.Status.History = append(s.Status.History, pleach.ViewChange{
			Number: uint64(i), Time: now,
			Changes: []pleach.MemberChange{{ID: "web9", Cause: pleach.CauseSuspected, By: []int{4}}},
		})
	}
	return s
}

// One screen, at any size, and every state has a sign of its own.
func TestStatusScreen(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	defer func() { time.Local = local }()
	var lines []string
	for _, n := range []int{5, 50, 500} {
		text := screenOf(n).text()
		if height := strings.Count(text, "\n"); height > 45 {
			t.Errorf("%d members take %d lines", n, height)
		}
		for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			if width := len([]rune(line)); width > 100 {
				t.Errorf("%d members: a line of %d characters: %s", n, width, line)
			}
			lines = append(lines, fmt.Sprintf("%3d members, line %2d| %s", n, i+1, line))
		}
		for _, sign := range []string{signAlive, signSelf, signSuspect, signLags, signHole} {
			if !strings.Contains(text, sign) {
				t.Errorf("%d members: no %s", n, sign)
			}
		}
	}
	testutil.GoldenLines(t, "testdata/status.golden", lines)
	all := screenOf(500)
	all.all = true
	if text := all.text(); !strings.Contains(text, "web499") {
		t.Error("--all does not list all")
	}
	colored := screenOf(5)
	colored.color = true
	if text := colored.text(); !strings.Contains(text, "\x1b[31m?\x1b[0m") {
		t.Error("a suspected member is not red")
	}
}

// A watched screen is written over, never cleared in between, and does not scroll.
func TestWatchScreen(t *testing.T) {
	var out strings.Builder
	w := newWatchScreen(&out)
	w.height = func() int { return 4 }
	for _, text := range []string{"one\ntwo\n", "1\n", "a\nb\nc\nd\n"} {
		if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
			t.Error(n, err)
		}
	}
	w.close()
	const want = beginWatch + clearAll +
		goHome + "one\x1b[K\ntwo\x1b[K\n\x1b[J" +
		goHome + "1\x1b[K\n\x1b[J" +
		goHome + "a\x1b[K\nb\x1b[K\n… 2 more lines\x1b[K\n\x1b[J" + endWatch
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1234 * time.Millisecond: "1.2s", 45 * time.Second: "45s", 200 * time.Second: "3m20s",
		5*time.Hour + 10*time.Minute: "5h10m", 300 * time.Hour: "12d",
	} {
		if got := age(d); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
