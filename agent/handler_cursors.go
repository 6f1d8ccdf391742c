package agent

// Handlers of topics resume where they were when the agent is started again. Their positions are in a
// file of the data directory: a message that has arrived runs its handlers at least once, even if the
// agent is killed. Positions of handlers that are not in the settings any more are dropped.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/pleach-go/pleach/agent/config"
	"github.com/pleach-go/pleach/agent/retention"
)

// positionsFile is the name of the file.
const positionsFile = "handlers"

// positions are those of handlers, by their names. The zero value keeps nothing.
type positions struct {
	file string // empty: nothing is kept
	log  *slog.Logger

	mu     sync.Mutex
	by     map[string]string // IDs of messages: all up to them were handled
	failed bool              // the file could not be written, and the log says so
}

// open reads the file in the data directory of the agent, if it has one.
func (p *positions) open(dir string, log *slog.Logger) {
	p.by, p.log = make(map[string]string), log
	if dir == "" {
		return
	}
	p.file = filepath.Join(dir, positionsFile)
	b, err := os.ReadFile(p.file)
	if err == nil {
		err = json.Unmarshal(b, &p.by)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("positions of handlers are lost: they begin with the next message", "cause", err)
		p.by = make(map[string]string)
	}
}

// handlerName names a handler by its topic and its command: another command begins with the next
// message.
func handlerName(c *config.Handler) string { return fmt.Sprint(c.On, " ", c.Run) }

// keep drops the positions of handlers that are not wanted.
func (p *positions) keep(wanted []config.Handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.by {
		if !slices.ContainsFunc(wanted, func(c config.Handler) bool { return handlerName(&c) == name }) {
			delete(p.by, name)
		}
	}
}

// get returns the position of a handler; empty: it has none.
func (p *positions) get(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.by[name]
}

// set writes the position of a handler to the file.
func (p *positions) set(name, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.by[name] = id
	if p.file == "" {
		return
	}
	b, err := json.Marshal(p.by)
	if err == nil {
		err = os.WriteFile(p.file+".new", b, 0o600)
	}
	if err == nil {
		err = os.Rename(p.file+".new", p.file)
	}
	if err != nil && !p.failed {
		p.log.Error("positions of handlers are not saved: after a restart, they run again for messages that they have handled", "cause", err)
	}
	p.failed = err != nil
}

// progress is how far a handler is. Several of its commands may run at a time: the position is before
// the first message whose command has not ended.
type progress struct {
	save    func(id string)
	mu      sync.Mutex
	running []*running
}

type running struct {
	id   string
	over bool
}

// begin notes that a command runs for a message, and returns what says that it has ended.
func (p *progress) begin(id string) (end func()) {
	r := &running{id: id}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = append(p.running, r)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		r.over = true
		last := ""
		for len(p.running) > 0 && p.running[0].over {
			last = p.running[0].id
			p.running = p.running[1:]
		}
		if last != "" {
			p.save(last)
		}
	}
}

// resume returns the cursor of a handler, where it was or else behind the last message. The position
// is saved before the first message comes.
func (h *handlers) resume(log *retention.Log, f retention.Filter, name string) (*retention.Cursor, error) {
	cursor, err := log.Subscribe(f, h.positions.get(name))
	if err != nil { // the log has lost its end with the disk's
		cursor, err = log.Subscribe(f, "")
	}
	if err == nil && h.positions.get(name) == "" {
		h.positions.set(name, cursor.ID())
	}
	return cursor, err
}
