package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/pleach-go/pleach/shard"
)

// ErrNoShards is returned for shards that nobody has made.
var ErrNoShards = errors.New("there are no shards of that name: make them with PUT /v1/shards/NAME?partitions=64")

// PartitionsError is returned for shards that have another number of partitions.
type PartitionsError struct {
	Name string
	// Partitions is the number that the shards have, and Asked the one that was asked for.
	Partitions, Asked int
}

func (e *PartitionsError) Error() string {
	return fmt.Sprintf("the shards %s have %d partitions, not %d: keys would change their owners; use another name, or stop the programs that use them, DELETE them and make them again",
		e.Name, e.Partitions, e.Asked)
}

// ShardsFullError is returned for shards that would be more than all agents of a group keep.
type ShardsFullError struct{ Sets, Partitions int }

func (e *ShardsFullError) Error() string {
	return fmt.Sprintf("there are %d shards with %d partitions: a group has at most %d, with %d; DELETE some, or ask for fewer partitions", e.Sets, e.Partitions, MaxShards, MaxShardPartitions)
}

// Limits of the shards of a group.
const (
	MaxShards          = 64
	MaxShardPartitions = 8 << 10 // of all of them together: each view moves some
)

// shardStatus is the status of an error of shards; 0: it is none of theirs.
func shardStatus(err error) int {
	var partitions *PartitionsError
	var settings *shard.SettingsError
	if errors.As(err, new(*ShardsFullError)) {
		return http.StatusRequestEntityTooLarge
	}
	if errors.As(err, &partitions) || errors.As(err, &settings) {
		return http.StatusConflict
	}
	return 0
}

// Shards divide keys of programs among the agents of a group, each partition with one owner.
type Shards interface {
	// PutShards has all agents take part in shards, and DeleteShards ends them. PutShards returns
	// a [*PartitionsError] if they have another number of partitions.
	PutShards(ctx context.Context, name string, partitions int) (*Changed, error)
	DeleteShards(ctx context.Context, name string) (*Changed, error)
	// ShardOf returns the partition of a key, and Owners the owner of each partition.
	ShardOf(ctx context.Context, name, key string) (*Shard, error)
	Owners(ctx context.Context, name string) (*Owners, error)
}

// Shard is the partition of a key.
type Shard struct {
	Name      string `json:"name"`
	Partition int    `json:"partition"`
	// Mine says that this agent owns the partition and may serve it at this moment.
	Mine bool `json:"mine"`
	// Owner is the member that owns it as far as this agent knows. There is none while the partition
	// moves. Token is the fencing token, which the clients of the owner get.
	Owner *MemberRef `json:"owner,omitempty"`
	Token uint64     `json:"token,omitempty"`
}

// Owners are the partitions that have an owner.
type Owners struct {
	Name   string           `json:"name"`
	Owners []PartitionOwner `json:"owners"`
}

// PartitionOwner is the owner of a partition.
type PartitionOwner struct {
	Partition int `json:"partition"`
	MemberRef
	// Token is the fencing token of a partition that this agent owns.
	Token uint64 `json:"token,omitempty"`
}

// maxPartitions is how many partitions shards have.
const maxPartitions = 4096

func (s *Server) putShards(w http.ResponseWriter, r *http.Request) error {
	partitions, err := strconv.Atoi(r.URL.Query().Get("partitions"))
	if name := r.PathValue("name"); err != nil || partitions < 1 || partitions > maxPartitions || len(name) > 100 {
		return badRequest("write a name of at most 100 bytes and 1 to %d partitions: ?partitions=64", maxPartitions)
	}
	return call(w, r, func(ctx context.Context) (any, error) {
		changed, err := s.agent.PutShards(ctx, r.PathValue("name"), partitions)
		if err == nil && r.URL.Query().Get("wait") == "true" {
			err = s.awaitOwners(ctx, r.PathValue("name"), partitions)
		}
		return changed, err
	})
}

// ownersInterval is the time between two looks at partitions that have no owner yet.
const ownersInterval = 20 * time.Millisecond

// awaitOwners waits until this agent knows the owner of every partition.
func (s *Server) awaitOwners(ctx context.Context, name string, partitions int) error {
	for {
		owners, err := s.agent.Owners(ctx, name)
		if err != nil && !errors.Is(err, ErrNoShards) || err == nil && len(owners.Owners) == partitions {
			return err
		}
		select {
		case <-time.After(ownersInterval):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Server) deleteShards(w http.ResponseWriter, r *http.Request) error {
	return call(w, r, func(ctx context.Context) (any, error) { return s.agent.DeleteShards(ctx, r.PathValue("name")) })
}

func (s *Server) getShards(w http.ResponseWriter, r *http.Request) error {
	return call(w, r, func(ctx context.Context) (any, error) {
		if r.URL.Query().Has("key") {
			return s.agent.ShardOf(ctx, r.PathValue("name"), r.URL.Query().Get("key"))
		}
		return s.agent.Owners(ctx, r.PathValue("name"))
	})
}
