package agent

import (
	"context"
	"time"

	"github.com/pleach-go/pleach/internal/agent/api"
)

// Locks implements [api.Locks].
func (a *Agent) Locks(ctx context.Context) (*api.LockList, error) {
	s, err := a.serving(ctx)
	if err != nil {
		return nil, err
	}
	held, err := s.locks.List(ctx)
	if err != nil {
		return nil, err
	}
	list := &api.LockList{Locks: make([]api.Lock, len(held))}
	for i, h := range held {
		list.Locks[i] = api.Lock{Name: h.Name, Holder: h.ID, Token: h.Token, TTL: h.TTL.Seconds(), Expired: h.Expired}
	}
	return list, nil
}

// Lock implements [api.Locks].
func (a *Agent) Lock(ctx context.Context, name, holder string, ttl time.Duration, wait bool) (*api.Lock, error) {
	s, err := a.serving(ctx)
	if err != nil {
		return nil, err
	}
	grant := s.locks.TryGrant
	if wait {
		grant = s.locks.Grant
	}
	token, err := grant(ctx, name, holder, ttl)
	if err != nil {
		return nil, err
	}
	return &api.Lock{Name: name, Holder: holder, Token: token, TTL: ttl.Seconds()}, nil
}

// Renew implements [api.Locks].
func (a *Agent) Renew(ctx context.Context, name string, token uint64) error {
	s, err := a.serving(ctx)
	if err != nil {
		return err
	}
	return s.locks.Renew(ctx, name, token)
}

// Unlock implements [api.Locks].
func (a *Agent) Unlock(ctx context.Context, name string, token uint64) error {
	s, err := a.serving(ctx)
	if err != nil {
		return err
	}
	return s.locks.Release(ctx, name, token)
}
