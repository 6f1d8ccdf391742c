package agent

// A reload takes over all settings that a running agent can change, or none: everything that can fail
// comes first.

import (
	"context"
	"fmt"
	"maps"
	"os"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/config"
)

// reload reads the settings again at each signal to reload.
func (a *Agent) reload(ctx context.Context, server *api.Server) {
	var r reloading
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.options.Reload:
		}
		err := a.reloadOnce(ctx, server, &r)
		if err != nil {
			a.log.Error("settings not reloaded", "cause", err)
		}
		server.Audit("operator", "signal", "reload", "settings", err)
	}
}

// reloading is what a reload leaves for the next one.
type reloading struct {
	tagsUnsure bool // tags were sent to the group, and it is not known whether they are in force
}

// reloadOnce takes over handlers, tags, the token and the rights of clients. Certificates are followed anyway; here
// they are checked, so that the log says what is wrong with them.
func (a *Agent) reloadOnce(ctx context.Context, server *api.Server, r *reloading) error {
	read, err := a.options.load()
	if err != nil {
		return err
	}
	group, err := read.GroupConfig(a.options.Version)
	if err != nil {
		return err
	}
	token := ""
	if read.API != "" {
		token, err = read.Token()
		if err != nil {
			return err
		}
	}
	rules, err := loadRules(read)
	old := a.config.Load()
	if err == nil {
		err = os.Chmod(old.Socket, modeOf(rules))
	}
	if err != nil {
		return err
	}
	if g := a.group.Load(); g != nil && (r.tagsUnsure || !maps.Equal(old.Tags, read.Tags)) {
		timed, cancel := context.WithTimeout(ctx, metaTimeout)
		defer cancel()
		r.tagsUnsure = true
		if err := a.setMeta(timed, g, group.Meta); err != nil {
			return fmt.Errorf("tags: %w; nothing else was taken over: reload again", err)
		}
		r.tagsUnsure = false
	}
	now := *old
	now.Handlers, now.Tags, now.TokenFile, now.RightsFile = read.Handlers, read.Tags, read.TokenFile, read.RightsFile
	a.config.Store(&now)
	if token != "" {
		server.SetToken(token)
	}
	server.SetRules(rules)
	a.handlers.start(ctx, a, now.Handlers)
	if g := a.group.Load(); g != nil {
		a.registerQueries(g)
	}
	a.log.Info("settings reloaded", "handlers", len(now.Handlers), "needRestart", config.Differing(&now, read))
	return nil
}
