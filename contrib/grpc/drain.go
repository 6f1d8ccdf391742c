package pleachgrpc

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/pleach-go/pleach"
)

// announceTimeout bounds the wait for a view in which this server is draining. Without a quorum there
// is none. The server then stops without it: gRPC itself tells connected clients to go away.
const announceTimeout = 5 * time.Second

// Drain shuts a server down so that no request fails: it announces in the group that the server is
// draining, so that clients pick other servers, and stops the server when all requests have ended
// ([grpc.Server.GracefulStop]). If ctx ends first, Drain cancels the remaining requests and returns the
// error of ctx. Afterwards, leave the group ([pleach.Group.Close]).
//
// If the announcement fails, Drain stops the server all the same, gracefully, and returns an error.
func Drain(ctx context.Context, group *pleach.Group, server *grpc.Server) error {
	announced := announceDraining(ctx, group)
	stopped := make(chan struct{})
	go func() {
		server.GracefulStop()
		close(stopped)
	}()
	select {
	case <-stopped:
		return announced
	case <-ctx.Done():
		server.Stop()
		<-stopped
		return ctx.Err()
	}
}

func announceDraining(ctx context.Context, group *pleach.Group) error {
	meta := group.Self().Meta
	drained := withDraining(meta)
	if drained == meta {
		return nil // it has announced no address
	}
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	if err := group.SetMeta(ctx, drained); err != nil {
		return fmt.Errorf("announce that the server is draining: %w", err)
	}
	return nil
}
