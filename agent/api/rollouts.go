package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"time"

	"github.com/pleach-go/pleach/agent/rights"
	"github.com/pleach-go/pleach/rollout"
)

// Rollouts release messages to the agents of a group in waves.
type Rollouts interface {
	// Rollouts returns the rollouts that the group keeps, oldest first.
	Rollouts(ctx context.Context) (*RolloutList, error)
	Rollout(ctx context.Context, id string) (*Rollout, error)
	StartRollout(ctx context.Context, s *RolloutSpec) (*Rollout, error)
	ChangeRollout(ctx context.Context, id string, change RolloutChange) (*Rollout, error)
}

// RolloutChange is what an operator has a rollout do.
type RolloutChange string

// The changes.
const (
	PauseRollout  RolloutChange = "pause"
	ResumeRollout RolloutChange = "resume"
	StopRollout   RolloutChange = "stop"
	RevertRollout RolloutChange = "revert"
)

// MaxRollout is how long a file, or a message with its revert, may be: they are kept as JSON in
// rollout.MaxPayload bytes.
const MaxRollout = 700 << 10

// RolloutSpec is a message or a file, and how it is released. The fields are those of [rollout.Spec].
type RolloutSpec struct {
	Topic string       `json:"topic,omitempty"`
	File  *RolloutFile `json:"file,omitempty"`
	Payload
	// Revert is the message that members get which had the one before, if the rollout fails.
	Revert *Payload `json:"revert,omitempty"`
	Waves  string   `json:"waves,omitempty"`
	// Gate is the name of a query whose handler every agent runs, ready, or empty.
	Gate           string  `json:"gate,omitempty"`
	ByDomain       bool    `json:"by_domain,omitempty"`
	Hold           float64 `json:"hold,omitempty"`    // seconds
	Timeout        float64 `json:"timeout,omitempty"` // seconds of each step
	StopOnDeath    bool    `json:"stop_on_death,omitempty"`
	PauseOnFailure bool    `json:"pause_on_failure,omitempty"`
}

// Label names what is released, for people.
func (s *RolloutSpec) Label() string {
	if s.File != nil {
		return ":" + path.Join(s.File.Dir, s.File.Name)
	}
	return s.Topic
}

// RolloutFile is where members write a file.
type RolloutFile struct {
	Dir  string `json:"dir"`
	Name string `json:"name"`
	Mode uint32 `json:"mode"` // the permissions
}

// Duration returns a time of so many seconds.
func Duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// Rollout is the state of a rollout.
type Rollout struct {
	ID     string `json:"id"`
	Name   string `json:"name"` // the topic, or :DIR/NAME of a file
	Gate   string `json:"gate,omitempty"`
	Phase  string `json:"phase"`
	Paused bool   `json:"paused,omitempty"`
	Ended  bool   `json:"ended,omitempty"`
	// Wave is the number of the wave that was released last, of Waves.
	Wave  int `json:"wave"`
	Waves int `json:"waves"`
	// Reason says why it has paused, stopped or reverted.
	Reason  string          `json:"reason,omitempty"`
	Hold    float64         `json:"hold,omitempty"` // seconds
	Members []RolloutMember `json:"members"`
}

// RolloutMember is a member in a rollout.
type RolloutMember struct {
	ID            string `json:"id"`
	FailureDomain string `json:"failure_domain,omitempty"`
	Wave          int    `json:"wave"`
	State         string `json:"state"`
	// Has says that the member has got the message, and may have reverted it since.
	Has    bool   `json:"has,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// RolloutList is all rollouts that the group keeps, oldest first.
type RolloutList struct {
	Rollouts []Rollout `json:"rollouts"`
}

func (s *Server) listRollouts(w http.ResponseWriter, r *http.Request) error {
	return call(w, r, func(ctx context.Context) (any, error) { return s.agent.Rollouts(ctx) })
}

func (s *Server) getRollout(w http.ResponseWriter, r *http.Request) error {
	return call(w, r, func(ctx context.Context) (any, error) { return s.agent.Rollout(ctx, r.PathValue("id")) })
}

func (s *Server) startRollout(w http.ResponseWriter, r *http.Request) error {
	return s.post(w, r, MaxBody, func(ctx context.Context, body []byte) (any, error) {
		var spec RolloutSpec
		if err := json.Unmarshal(body, &spec); err != nil {
			return nil, badRequest("write a rollout as JSON: %w", err)
		}
		if c := callerOf(r); spec.File != nil && !c.rights.Has(rights.Files) {
			return nil, s.lacks(c, rights.Files)
		}
		return s.agent.StartRollout(ctx, &spec)
	})
}

func (s *Server) changeRollout(w http.ResponseWriter, r *http.Request) error {
	change := RolloutChange(r.URL.Query().Get("do"))
	switch change {
	case PauseRollout, ResumeRollout, StopRollout, RevertRollout:
		return call(w, r, func(ctx context.Context) (any, error) {
			return s.agent.ChangeRollout(ctx, r.PathValue("id"), change)
		})
	}
	return badRequest("do=%s: write pause, resume, stop or revert", change)
}

// rolloutStatus is the status of an error of rollouts; 0: it is none of theirs.
func rolloutStatus(err error) int {
	switch {
	case errors.Is(err, rollout.ErrUnknown):
		return http.StatusNotFound
	case errors.Is(err, rollout.ErrSpec):
		return http.StatusBadRequest
	case errors.Is(err, rollout.ErrLate), errors.Is(err, rollout.ErrNoRevert):
		return http.StatusConflict
	case errors.Is(err, rollout.ErrFull):
		return http.StatusRequestEntityTooLarge
	}
	return 0
}
