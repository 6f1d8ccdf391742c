package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/pleach-go/pleach/internal/agent/api"
	"github.com/pleach-go/pleach/internal/agent/config"
)

// socketMode lets the agent's user and group use the API.
const socketMode = 0o660

// serving serves connections until ctx ends.
type serving func(ctx context.Context) error

// listen opens the socket, and the loopback address and the one of metrics if there are any. It is done first, so
// that an agent that nothing could talk to does not join.
func (a *Agent) listen(c *config.Config, server *api.Server) (all []serving, err error) {
	socket, err := listenSocket(c.Socket)
	if err != nil {
		return nil, err
	}
	all = append(all, func(ctx context.Context) error { return server.ServeSocket(ctx, socket) })
	metrics, err := c.Metrics.Listen()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("metrics-listen: %w", err), socket.Close())
	}
	if metrics != nil {
		all = append(all, func(ctx context.Context) error { return server.ServeMetrics(ctx, metrics) })
		defer func() {
			if all == nil {
				_ = metrics.Close()
			}
		}()
	}
	if c.API == "" {
		return all, nil
	}
	token, err := c.Token()
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	server.SetToken(token)
	tcp, err := net.Listen("tcp", c.API)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("api: %w", err), socket.Close())
	}
	return append(all, func(ctx context.Context) error { return server.ServeTCP(ctx, tcp) }), nil
}

// listenSocket opens a Unix socket. One that an agent has left behind when it was killed is
// removed.
func listenSocket(path string) (net.Listener, error) {
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
	if err := os.Chmod(path, socketMode); err != nil {
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
