package main

import (
	"context"
	"path/filepath"

	"github.com/pleach-go/pleach/agent/client"
)

// pleachAgent is a pleach agent behind its Unix socket.
type pleachAgent struct {
	*client.Client
	cancel context.CancelFunc // of its subscriber
}

// startPleach lets the first agent begin a group, and the others join it.
func startPleach(f *fleet, i int) (args []string, connect func() (agent, error)) {
	socket := filepath.Join(f.dir, nameOf(i)+".sock")
	args = []string{"pleach", "agent", "--id", nameOf(i), "--listen", f.addresses[i], "--socket", socket, f.addresses[0]}
	if i == 0 {
		args = append(args, "--expect", "1")
	}
	connect = func() (agent, error) {
		return &pleachAgent{Client: client.Socket(socket), cancel: func() {}}, nil
	}
	return args, connect
}

func (p *pleachAgent) join() error { return nil }

func (p *pleachAgent) alive(ctx context.Context) (names []string, err error) {
	m, err := p.Members(ctx)
	for i := range m.Members {
		names = append(names, m.Members[i].ID)
	}
	return names, err
}

func (p *pleachAgent) subscribe(ctx context.Context, got func(string)) error {
	ctx, p.cancel = context.WithCancel(ctx)
	ended, subscribed := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- p.Messages(ctx, client.Subscription{}, func() { close(subscribed) }, func(e client.Event) error {
			if e.Message != nil {
				got(e.Message.Data)
			}
			return nil
		})
	}()
	select {
	case <-subscribed:
		return nil
	case err := <-ended:
		return err
	}
}

func (p *pleachAgent) send(ctx context.Context, text string) error {
	_, err := p.Broadcast(ctx, "bench", []byte(text), false, patience)
	return err
}

func (p *pleachAgent) close() error {
	p.cancel()
	return nil
}
