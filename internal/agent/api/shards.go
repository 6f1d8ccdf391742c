package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
)

// ErrNoShards is returned for shards that nobody has made.
var ErrNoShards = errors.New("there are no shards of that name: make them with PUT /v1/shards/NAME?partitions=64")

// Shards divide keys of programs among the agents of a group, each partition with one owner.
type Shards interface {
	// PutShards has all agents take part in shards, and DeleteShards ends them.
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
	// Owner is the member that owns it as far as this agent knows, with a fencing token. There is
	// none while the partition moves.
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
	Token uint64 `json:"token"`
}

// maxPartitions is how many partitions shards have.
const maxPartitions = 4096

func (s *Server) putShards(w http.ResponseWriter, r *http.Request) error {
	partitions, err := strconv.Atoi(r.URL.Query().Get("partitions"))
	if name := r.PathValue("name"); err != nil || partitions < 1 || partitions > maxPartitions || len(name) > 100 {
		return badRequest("write a name of at most 100 bytes and 1 to %d partitions: ?partitions=64", maxPartitions)
	}
	return call(w, r, func(ctx context.Context) (any, error) {
		return s.agent.PutShards(ctx, r.PathValue("name"), partitions)
	})
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
