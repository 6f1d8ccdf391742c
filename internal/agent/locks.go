package agent

import (
	"context"
	"time"

	"github.com/pleach-go/pleach/internal/agent/api"
)

// Locks implements [api.Locks].
func (a *Agent) Locks(ctx context.Context) (*api.LockList, error) {
	return served(ctx, a, func(s *services) (*api.LockList, error) {
		held, err := s.locks.List(ctx)
		list := &api.LockList{Locks: make([]api.Lock, len(held))}
		for i, h := range held {
			list.Locks[i] = api.Lock{Name: h.Name, Holder: h.ID, Token: h.Token, TTL: h.TTL.Seconds(), Expired: h.Expired}
		}
		return list, err
	})
}

// Lock implements [api.Locks].
func (a *Agent) Lock(ctx context.Context, name, holder string, ttl time.Duration, wait bool) (*api.Lock, error) {
	return served(ctx, a, func(s *services) (*api.Lock, error) {
		grant := s.locks.TryGrant
		if wait {
			grant = s.locks.Grant
		}
		token, err := grant(ctx, name, holder, ttl)
		return &api.Lock{Name: name, Holder: holder, Token: token, TTL: ttl.Seconds()}, err
	})
}

// Renew implements [api.Locks].
func (a *Agent) Renew(ctx context.Context, name string, token uint64) error {
	_, err := served(ctx, a, func(s *services) (struct{}, error) { return struct{}{}, s.locks.Renew(ctx, name, token) })
	return err
}

// Unlock implements [api.Locks].
func (a *Agent) Unlock(ctx context.Context, name string, token uint64) error {
	_, err := served(ctx, a, func(s *services) (struct{}, error) { return struct{}{}, s.locks.Release(ctx, name, token) })
	return err
}
