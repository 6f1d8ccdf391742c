package stabilization

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"

	"github.com/pleach-go/pleach"
)

// PleachMember is a member of a [pleach.Group] over TCP, with all defaults. No
// member broadcasts.
func PleachMember(ctx context.Context, s *Survivor) error {
	c := pleach.Config{Logger: slog.New(suspicions{s})}
	var g *pleach.Group
	var err error
	if s.Again {
		own := s.Place.Addresses[s.Place.Rank]
		c.Group, c.Listen, c.Security.Secret = s.Place.Group, own, s.Place.Secret
		g, err = pleach.Join(ctx, c, slices.DeleteFunc(slices.Clone(s.Place.Addresses),
			func(a string) bool { return a == own })...)
	} else {
		g, err = pleach.Start(ctx, c)
	}
	for err == nil {
		s.Ready()
		for v := range g.Views(ctx) {
			s.Sees(v.Number, missing(v, len(s.Place.Addresses)))
		}
		if err = g.Err(); !errors.Is(err, pleach.ErrEvicted) {
			return err
		}
		s.Evicted()
		err = g.Rejoin(ctx)
	}
	return err
}

// missing returns the ranks without a member.
func missing(v pleach.View, size int) (ranks []int) {
	for rank := range size {
		if !v.Has(rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// suspicions reports suspicions from the group's log, where they are seen first.
type suspicions struct{ survivor *Survivor }

// Enabled implements [slog.Handler].
func (h suspicions) Enabled(_ context.Context, l slog.Level) bool { return l == slog.LevelInfo }

// Handle implements [slog.Handler].
func (h suspicions) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "suspected" {
		return nil
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "peer" {
			return true
		}
		if rank, err := strconv.Atoi(a.Value.String()); err == nil {
			h.survivor.Suspects(rank)
		}
		return false
	})
	return nil
}

// WithAttrs implements [slog.Handler].
func (h suspicions) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup implements [slog.Handler].
func (h suspicions) WithGroup(string) slog.Handler { return h }
