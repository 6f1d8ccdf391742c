package agent

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strings"
	"time"

	"github.com/pleach-go/pleach/agent/api"
)

// The agents keep the name of a lock's holder, and with it a hash of the secret in the handle that
// only the holder has. So every agent can check the handle, and none can tell it.

// secretMark is between the name of a holder and the hash.
const (
	secretMark  = "\x00"
	secretBytes = 16 // of the hash
)

// newHolder returns the holder that the lock table keeps for a client, and the secret of its handle.
func newHolder(name string) (holder, secret string) {
	secret = rand.Text()
	return name + secretMark + hashOf(secret), secret
}

func hashOf(secret string) string {
	h := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(h[:secretBytes])
}

// splitHolder returns the name of a holder, and the hash if there is one.
func splitHolder(holder string) (name, hash string) {
	if i := strings.LastIndex(holder, secretMark); i >= 0 {
		return holder[:i], holder[i+len(secretMark):]
	}
	return holder, ""
}

// Locks implements [api.Locks].
func (a *Agent) Locks(ctx context.Context) (*api.LockList, error) {
	return served(ctx, a, func(s *services) (*api.LockList, error) {
		held, err := s.locks.List(ctx)
		list := &api.LockList{Locks: make([]api.HeldLock, len(held))}
		for i, h := range held {
			name, _ := splitHolder(h.ID)
			list.Locks[i] = api.HeldLock{Name: h.Name, Holder: name, TTL: h.TTL.Seconds(), Expired: h.Expired}
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
		kept, secret := newHolder(holder)
		token, err := grant(ctx, name, kept, ttl)
		if err != nil {
			return nil, &lockError{err}
		}
		return &api.Lock{
			Name: name, Holder: holder, Token: token, TTL: ttl.Seconds(),
			Handle: api.Handle{Token: token, Secret: secret}.String(),
		}, nil
	})
}

// lockError is an error that may name a holder, without the hash.
type lockError struct{ error }

func (e *lockError) Error() string {
	text := e.error.Error()
	for {
		i := strings.Index(text, secretMark)
		if i < 0 {
			return text
		}
		text = text[:i] + text[min(len(text), i+len(secretMark)+2*secretBytes):]
	}
}

// Unwrap returns the cause.
func (e *lockError) Unwrap() error { return e.error }

// Renew implements [api.Locks].
func (a *Agent) Renew(ctx context.Context, name string, h api.Handle) error {
	return a.asHolder(ctx, name, h, func(s *services) error { return s.locks.Renew(ctx, name, h.Token) })
}

// Unlock implements [api.Locks].
func (a *Agent) Unlock(ctx context.Context, name string, h api.Handle) error {
	return a.asHolder(ctx, name, h, func(s *services) error { return s.locks.Release(ctx, name, h.Token) })
}

// asHolder calls f if a handle is that of the lock. A lock that another client holds by now is f's to
// refuse.
func (a *Agent) asHolder(ctx context.Context, name string, h api.Handle, f func(*services) error) error {
	_, err := served(ctx, a, func(s *services) (struct{}, error) {
		holder, held, err := s.locks.Holder(ctx, name)
		if err != nil {
			return struct{}{}, err
		}
		_, hash := splitHolder(holder.ID)
		if held && holder.Token == h.Token && hash != "" &&
			subtle.ConstantTimeCompare([]byte(hash), []byte(hashOf(h.Secret))) != 1 {
			return struct{}{}, &api.HandleError{Name: name}
		}
		return struct{}{}, f(s)
	})
	return err
}
