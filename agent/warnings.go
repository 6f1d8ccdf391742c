package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/config"
)

// What will stop an agent soon, or keeps it from its group, is looked for every second and told
// in the same words everywhere: in the log when it begins and ends, in the status, on the page
// and as a metric, each with what to do.

const (
	warningInterval = time.Second
	// Warnings about a certificate begin expiryNotice before its end.
	expiryNotice = 7 * 24 * time.Hour
	// Warnings about a disk begin when less than both is left: one part in diskShare, and diskBytes.
	diskShare = 20
	diskBytes = 64 << 20
	// A member flaps that has gone so often within so short a time.
	flaps        = 3
	flapInterval = 10 * time.Minute
)

// warnings is what an agent is warned of.
type warnings struct {
	now    atomic.Pointer[[]api.Warning] // of this host
	expiry atomic.Pointer[expiry]
	join   joinCauses
}

// expiry tells when the certificate of this agent expires, which may be replaced. It is zero
// without TLS.
type expiry func() time.Time

// watchHost looks at this host every second until ctx ends.
func (a *Agent) watchHost(ctx context.Context) {
	for now := a.noteWarnings(time.Now(), nil); pause(ctx, warningInterval); {
		now = a.noteWarnings(time.Now(), now)
	}
}

// noteWarnings looks at this host, and logs what is not as before.
func (a *Agent) noteWarnings(at time.Time, before []api.Warning) []api.Warning {
	now := a.hostWarnings(at, before)
	a.warnings.now.Store(&now)
	for _, w := range now {
		if !slices.ContainsFunc(before, func(b api.Warning) bool { return b.Kind == w.Kind }) {
			a.log.Warn("warning", "kind", w.Kind, "says", w.Text, "next", w.Next)
		}
	}
	for _, w := range before {
		if !slices.ContainsFunc(now, func(n api.Warning) bool { return n.Kind == w.Kind }) {
			a.log.Info("warning is over", "kind", w.Kind)
		}
	}
	return now
}

// hostWarnings is what this host warns of. Those that were there before keep their beginning.
func (a *Agent) hostWarnings(now time.Time, before []api.Warning) []api.Warning {
	c := a.config.Load()
	all := []api.Warning{}
	if at := a.certificateEnd(); !at.IsZero() && at.Sub(now) < expiryNotice {
		all = append(all, certificateWarning(c, at, now))
	}
	if free, size, known := diskSpace(c.DataDir); c.DataDir != "" && known && free < size/diskShare && free < diskBytes {
		all = append(all, api.Warning{
			Kind: api.WarnDisk, Text: fmt.Sprintf("the disk of %s is full: %d of %d KiB are left", c.DataDir, free>>10,
				size>>10),
			Next: "free space there: a member that cannot save its vote does not vote, and is left out of the next view",
		})
	}
	for i := range all {
		all[i].Since = now
		for _, b := range before {
			if b.Kind == all[i].Kind {
				all[i].Since = b.Since
			}
		}
	}
	return all
}

func (a *Agent) certificateEnd() (at time.Time) {
	if e := a.warnings.expiry.Load(); e != nil {
		at = (*e)()
	}
	return at
}

func certificateWarning(c *config.Config, at, now time.Time) api.Warning {
	text := fmt.Sprintf("the certificate of this agent expires at %s, in %v", at.UTC().Format(time.DateTime+" MST"),
		at.Sub(now).Round(time.Minute))
	if !at.After(now) {
		text = fmt.Sprintf("the certificate of this agent has expired at %s: others refuse its connections",
			at.UTC().Format(time.DateTime+" MST"))
	}
	return api.Warning{
		Kind: api.WarnCertificate, Text: text,
		Next: fmt.Sprintf("replace %s and %s: the agent takes the new ones within a second", c.TLSCert, c.TLSKey),
	}
}

// followCertificate takes the certificate of a group's config.
func (w *warnings) followCertificate(c *pleach.Config) {
	with := *c
	e := expiry(func() time.Time { return config.CertificateEnd(&with) })
	w.expiry.Store(&e)
}

// hostNow is what was found at last.
func (w *warnings) hostNow() []api.Warning {
	if now := w.now.Load(); now != nil {
		return *now
	}
	return nil
}

// flapping warns of members that go and come back again and again.
func flapping(history []pleach.ViewChange, now time.Time) (all []api.Warning) {
	gone := make(map[string]int)
	for _, v := range history {
		for _, c := range v.Changes {
			if c.Gone() && c.Cause != pleach.CauseLeft && now.Sub(v.Time) < flapInterval {
				gone[c.ID]++
			}
		}
	}
	for id, n := range gone {
		if n >= flaps {
			all = append(all, api.Warning{
				Kind: api.WarnFlapping, Text: fmt.Sprintf("%s was removed %d times in %v: its link or its host comes and goes", id,
					n, flapInterval), Since: now,
				Next: "look at the cable, the switch and the load of its host; pleach status there, and its log",
			})
		}
	}
	slices.SortFunc(all, func(a, b api.Warning) int { return cmp.Compare(a.Text, b.Text) })
	return all
}

// notMember is why there is no group.
func (a *Agent) notMember() error {
	var parts []string
	for _, w := range a.warnings.hostNow() {
		parts = append(parts, w.Text+"; next: "+w.Next)
	}
	if text := a.warnings.join.text(); text != "" {
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return api.ErrNotMember
	}
	return fmt.Errorf("%w: %s", api.ErrNotMember, strings.Join(parts, "\n"))
}
