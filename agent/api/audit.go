package api

// The audit log says who has changed something through an agent: a line of the log, and an event of
// GET /v1/events?audit=true. Requests that programs repeat all the time, and those of a client that
// makes very many, are counted in one line for each client and action.

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pleach-go/pleach/agent/retention"
	"github.com/pleach-go/pleach/internal/base/logsuppress"
)

// EventAudit is the name of the events of the audit log.
const EventAudit = "audit"

// Audit is a line of the audit log.
type Audit struct {
	Time   time.Time `json:"time"`
	Who    string    `json:"who"`    // the user or the token
	From   string    `json:"from"`   // socket, or an address
	Action string    `json:"action"` // as in put key
	What   string    `json:"what"`   // it was done to
	Result string    `json:"result"` // ok, or the error
}

const (
	auditEvents     = 1000 // that are retained
	auditEventBytes = 1 << 20
	// Lines at once, and in a second after that: of one client, and of all.
	auditClientLines = 2
	auditLines       = 3
	// auditInterval is how often what is not worth a line is counted in one.
	auditInterval = 10 * time.Second
	// auditClients bounds the clients that are distinguished in an interval, and maxAuditText a field.
	auditClients = 8
	maxAuditText = 200
)

// repeated are the actions that are counted.
var repeated = []string{"send", "query", "renew lock"}

// audit is the audit log.
type audit struct {
	log    *slog.Logger
	events *retention.Log
	all    logsuppress.Budget

	mu      sync.Mutex
	clients map[string]*logsuppress.Budget
	counts  map[Audit]*auditCount // by who, from and action
}

// auditCount counts requests.
type auditCount struct{ all, failed int }

func (a *audit) init(log *slog.Logger) {
	a.log = log
	a.events = retention.New(strings.ToLower(rand.Text()[:8]),
		retention.Limits{Messages: auditEvents, Bytes: auditEventBytes})
	a.clients, a.counts = make(map[string]*logsuppress.Budget), make(map[Audit]*auditCount)
}

// Audit adds a line to the audit log.
func (s *Server) Audit(who, from, action, what string, err error) {
	e := Audit{Who: who, From: from, Action: action, What: what}
	if err != nil {
		e.Result = shortened(err.Error()) // it has no status
	}
	s.audit.add(e, err)
}

// request adds a request that was served, or refused.
func (a *audit) request(c *caller, action string, r *http.Request, err error) {
	a.add(Audit{Who: c.who, From: c.from, Action: action, What: target(r)}, err)
}

// target is what a request changes.
func target(r *http.Request) string {
	q := r.URL.Query()
	return cmp.Or(r.PathValue("key"), r.PathValue("name"), strings.TrimPrefix(q.Get("dir")+"/"+q.Get("name"), "/"),
		q.Get("topic"), q.Get("to"))
}

func (a *audit) add(e Audit, err error) {
	switch {
	case err == nil:
		e.Result = "ok"
	case e.Result == "":
		e.Result = shortened(fmt.Sprintf("%d: %v", statusOf(err), err))
	}
	e.Who, e.What = shortened(e.Who), shortened(e.What)
	if slices.Contains(repeated, e.Action) && !isForbidden(err) || !a.allow(e.Who) {
		a.countOnly(e, err != nil)
		return
	}
	a.write(e)
}

// isForbidden reports whether an error is that of a client without the right.
func isForbidden(err error) bool {
	var status *statusError
	return errors.As(err, &status) && status.status == http.StatusForbidden
}

func shortened(text string) string {
	if len(text) > maxAuditText {
		text = text[:maxAuditText] + "…"
	}
	return strings.ToValidUTF8(text, "\ufffd")
}

func (a *audit) write(e Audit) {
	e.Time = time.Now()
	a.log.Info("audit", "who", e.Who, "from", e.From, "action", e.Action, "what", e.What, "result", e.Result)
	if b, err := json.Marshal(e); err == nil { // it has no value that cannot be written
		a.events.Add(retention.Message{Topic: EventAudit, Time: e.Time, Data: b})
	}
}

// allow reports whether a client may have another line.
func (a *audit) allow(who string) bool {
	a.mu.Lock()
	b := a.clients[who]
	if b == nil {
		if len(a.clients) >= auditClients {
			clear(a.clients)
		}
		b = new(logsuppress.Budget)
		a.clients[who] = b
	}
	a.mu.Unlock()
	return b.Take(auditClientLines, auditClientLines) && a.all.Take(auditLines, auditLines)
}

// countOnly counts a request until the end of the interval.
func (a *audit) countOnly(e Audit, failed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.counts) == 0 {
		time.AfterFunc(auditInterval, a.flush)
	}
	key := Audit{Who: e.Who, From: e.From, Action: e.Action}
	c := a.counts[key]
	if c == nil && len(a.counts) >= auditClients {
		key = Audit{Who: "others", From: "others", Action: "several"}
		c = a.counts[key]
	}
	if c == nil {
		c = new(auditCount)
		a.counts[key] = c
	}
	c.all++
	if failed {
		c.failed++
	}
}

// flush writes what was counted.
func (a *audit) flush() {
	a.mu.Lock()
	counts := a.counts
	a.counts = make(map[Audit]*auditCount)
	a.mu.Unlock()
	for e, c := range counts {
		e.What, e.Result = fmt.Sprintf("%d requests in %v", c.all, auditInterval), "ok"
		if c.failed > 0 {
			e.Result = fmt.Sprintf("%d failed", c.failed)
		}
		a.write(e)
	}
}
