package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/config"
	"github.com/pleach-go/pleach/agent/rights"
)

// socketMode lets the agent's user and group use the API, and sharedMode all users: those whose rights
// the agent knows by its rights-file.
const (
	socketMode = 0o660
	sharedMode = 0o666
)

// serving serves connections until ctx ends.
type serving func(ctx context.Context) error

// listen opens the socket, and the loopback address and the one of metrics if there are any. It is done first, so
// that an agent that nothing could talk to does not join.
func (a *Agent) listen(c *config.Config, server *api.Server) (all []serving, err error) {
	var open []io.Closer
	defer func() {
		if err != nil {
			for _, l := range open {
				err = errors.Join(err, l.Close())
			}
		}
	}()
	rules, err := loadRules(c)
	if err != nil {
		return nil, err
	}
	server.SetRules(rules)
	socket, err := listenSocket(c.Socket, modeOf(rules))
	if err != nil {
		return nil, err
	}
	open = append(open, socket)
	all = append(all, func(ctx context.Context) error { return server.ServeSocket(ctx, socket) })
	if c.MetricsListen != "" {
		secure, err := c.Metrics.TLS()
		if err != nil {
			return nil, fmt.Errorf("metrics-listen: %w", err)
		}
		metrics, err := net.Listen("tcp", c.MetricsListen)
		if err != nil {
			return nil, fmt.Errorf("metrics-listen: %w", err)
		}
		open = append(open, metrics)
		all = append(all, func(ctx context.Context) error { return server.ServeMetrics(ctx, metrics, secure, c.Hosts()) })
	}
	if c.API == "" {
		return all, nil
	}
	token, err := c.Token()
	if err != nil {
		return nil, err
	}
	server.SetToken(token)
	tcp, err := net.Listen("tcp", c.API)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	return append(all, func(ctx context.Context) error { return server.ServeTCP(ctx, tcp) }), nil
}

// loadRules reads the rights of clients, if there is a file with them.
func loadRules(c *config.Config) (*rights.Rules, error) {
	if c.RightsFile == "" {
		return nil, nil
	}
	rules, err := rights.Load(c.RightsFile)
	if err == nil && rules.Local() && runtime.GOOS != "linux" {
		err = errors.New("rights-file: users and groups are known on Linux only: give rights to tokens")
	}
	return rules, err
}

func modeOf(rules *rights.Rules) fs.FileMode {
	if rules.Local() {
		return sharedMode
	}
	return socketMode
}

// listenSocket opens a Unix socket. One that an agent has left behind when it was killed is
// removed.
func listenSocket(path string, mode fs.FileMode) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { // the socket has its own mode
		return nil, fmt.Errorf("socket: %w", err)
	}
	if err := config.CheckSocket(path); err != nil {
		return nil, err
	}
	if err := checkUnused(path); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("socket: %s is there and is not a socket", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(fmt.Errorf("socket: %w", err), l.Close())
	}
	return l, nil
}

// checkUnused returns an error if another agent answers on a socket.
func checkUnused(path string) error {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil
	}
	_ = conn.Close()
	return fmt.Errorf("an agent answers on %s already: end it, or choose another --socket", path)
}
