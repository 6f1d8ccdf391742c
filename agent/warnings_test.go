package agent

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/config"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// A certificate is told before and after its end, with what to do.
func TestCertificateWarning(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for left, want := range map[time.Duration]string{
		24 * time.Hour: "expires at 2026-01-03 03:04:05 UTC, in 24h0m0s",
		-time.Second:   "has expired at 2026-01-02 03:04:04 UTC",
	} {
		c := &config.Config{TLSCert: "a.pem", TLSKey: "a.key"}
		if w := certificateWarning(c, now.Add(left), now); !strings.Contains(w.Text, want) ||
			!strings.Contains(w.Next, "a.pem and a.key") || w.Kind != api.WarnCertificate {
			t.Errorf("%+v", w)
		}
	}
}

// A member flaps that was removed three times, not one that has left as often, or long ago.
func TestFlapping(t *testing.T) {
	now := time.Now()
	var history []pleach.ViewChange
	for i := range 3 {
		at := now.Add(time.Duration(i-4) * time.Minute)
		history = append(history,
			pleach.ViewChange{Time: at, Changes: []pleach.MemberChange{
				{ID: "flaps", Cause: pleach.CauseSuspected},
				{ID: "leaves", Cause: pleach.CauseLeft},
			}},
			pleach.ViewChange{Time: at, Changes: []pleach.MemberChange{{ID: "flaps", Cause: pleach.CauseJoined}}},
			pleach.ViewChange{
				Time:    at.Add(-time.Hour),
				Changes: []pleach.MemberChange{{ID: "flapped", Cause: pleach.CauseSuspected}},
			})
	}
	if all := flapping(history, now); len(all) != 1 || !strings.Contains(all[0].Text, "flaps was removed 3 times") {
		t.Errorf("%+v", all)
	}
	if all := flapping(history[3:], now); len(all) != 0 {
		t.Errorf("after two times: %+v", all)
	}
}

// A warning is logged when it begins and when it is over, and keeps its beginning meanwhile.
func TestWarningsAreToldOnce(t *testing.T) {
	ends := time.Now().Add(time.Hour)
	log := &testutil.LogBuffer{}
	a := &Agent{log: log.Logger()}
	a.config.Store(&config.Config{})
	e := expiry(func() time.Time { return ends })
	a.warnings.expiry.Store(&e)
	first := a.noteWarnings(time.Now(), nil)
	second := a.noteWarnings(time.Now().Add(time.Second), first)
	if len(first) != 1 || len(second) != 1 || !second[0].Since.Equal(first[0].Since) {
		t.Errorf("%+v, then %+v", first, second)
	}
	ends = ends.Add(365 * 24 * time.Hour)
	if third := a.noteWarnings(time.Now(), second); len(third) != 0 {
		t.Errorf("%+v", third)
	}
	if begun, over := len(log.Lines("msg=warning ")), len(log.Lines(`"warning is over"`)); begun != 1 || over != 1 {
		t.Errorf("%d lines that it begins, %d that it is over", begun, over)
	}
}

// An agent knows why it is not a member from the log of its group.
func TestJoinCauses(t *testing.T) {
	var causes joinCauses
	log := slog.New(joinLog{(&testutil.LogBuffer{}).Logger().Handler(), &causes}).With("group", "db")
	log.Info("request is retried", "member", "10.0.0.2:7000", "cause",
		"tcp: request to 10.0.0.2:7000: dial tcp 10.0.0.2:7000: connect: connection refused")
	log.Info("looking for the group, or for processes to begin it with", "found", "1 of 3 expected processes found")
	log.Info("something else", "cause", "x")
	if got, want := causes.text(),
		"1 of 3 expected processes found\nfailed so far: 10.0.0.2:7000: connection refused"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	causes.forget()
	if causes.text() != "" {
		t.Errorf("%q after it has joined", causes.text())
	}
}
