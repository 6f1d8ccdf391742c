package admission

import (
	"context"
	"log/slog"
	"time"
)

// Followed are the files of a process that are read again when they change.
type Followed struct {
	Secrets *Secrets // nil: the secret does not change
	Deny    *Deny    // nil: nothing is denied
}

// Watcher acts on changes of the files.
type Watcher struct {
	Followed
	Logger *slog.Logger
	// OnSecrets is called with the secrets, and OnDeny after the deny list has changed, and
	// once at the beginning. OnLook is called at each look.
	OnSecrets func([][]byte)
	OnDeny    func()
	OnLook    func()
}

// Run looks at the files until the context ends.
func (w *Watcher) Run(ctx context.Context) {
	var list any
	failed := make(map[string]string)
	report := func(setting string, err error) {
		text := ""
		if err != nil {
			text = err.Error()
		}
		if err != nil && text != failed[setting] {
			w.Logger.Error("file not reloaded: the last good one counts", "setting", setting, "cause", err)
		}
		failed[setting] = text
	}
	ticks := time.NewTicker(reloadInterval)
	defer ticks.Stop()
	for ctx.Err() == nil {
		if w.Secrets != nil {
			secrets, err := w.Secrets.Look()
			report("SecretFile", err)
			w.OnSecrets(secrets)
		}
		now, err := w.Deny.Look()
		report("DenyFile", err)
		if now != list {
			list = now
			w.OnDeny()
		}
		w.OnLook()
		select {
		case <-ctx.Done():
		case <-ticks.C:
		}
	}
}
