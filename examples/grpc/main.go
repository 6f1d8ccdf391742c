// Grpc is a gRPC service with several servers, and a client that loses no request when they restart.
//
//	members="127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003"
//	go run ./examples/grpc serve --listen 127.0.0.1:7001 --grpc 127.0.0.1:8001 $members
//
// starts the first of three servers. The arguments are the addresses of all of them in the group. They
// implement gRPC's health service, which needs no generated code of its own.
//
//	go run ./examples/grpc call --rate 100 $members
//
// sends requests until it is interrupted, and prints once a second how many have succeeded and failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/pleach-go/pleach"
	pleachgrpc "github.com/pleach-go/pleach/contrib/grpc"
)

const (
	joinTimeout    = 5 * time.Minute // other servers may start later
	drainTimeout   = 30 * time.Second
	requestTimeout = time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	commands := map[string]func(context.Context, []string) error{"serve": serve, "call": call}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		log.Fatal("usage: grpc serve|call [flags] MEMBER...")
	}
	if err := commands[os.Args[1]](ctx, os.Args[2:]); err != nil {
		log.Fatal(err)
	}
}

// service is the service of all servers.
type service struct {
	health.UnimplementedHealthServer
	work time.Duration // duration of a request
}

// Check implements [health.HealthServer].
func (s *service) Check(ctx context.Context, _ *health.HealthCheckRequest) (*health.HealthCheckResponse, error) {
	select {
	case <-time.After(s.work):
		return &health.HealthCheckResponse{Status: health.HealthCheckResponse_SERVING}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serve runs a server until ctx ends.
func serve(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	listen := flags.String("listen", "", "own `ADDRESS` in the group")
	address := flags.String("grpc", "", "`ADDRESS` of the gRPC server")
	work := flags.Duration("work", 5*time.Millisecond, "duration of a request")
	_ = flags.Parse(args) // it exits

	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	health.RegisterHealthServer(server, &service{work: *work})
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	defer server.Stop()

	joining, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	group, err := pleach.Join(joining, pleach.Config{
		Group: "servers", Listen: *listen, Expect: flags.NArg(), Meta: pleachgrpc.WithAddress("", *address),
	}, flags.Args()...)
	if err != nil {
		return err
	}
	defer group.Close()
	select {
	case err := <-failed:
		return err
	case <-group.Done():
		return group.Err()
	case <-ctx.Done():
	}
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	return pleachgrpc.Drain(draining, group, server)
}

// call sends requests until ctx ends.
func call(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("call", flag.ExitOnError)
	rate := flags.Int("rate", 100, "requests a second")
	_ = flags.Parse(args)

	group, err := pleach.Join(ctx, pleach.Config{Group: "servers", Observer: true}, flags.Args()...)
	if err != nil {
		return err
	}
	defer group.Close()
	conn, err := pleachgrpc.NewClient(group, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()

	var succeeded, failed atomic.Int64
	next, report := time.NewTicker(time.Second/time.Duration(*rate)), time.NewTicker(time.Second)
	defer next.Stop()
	defer report.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-group.Done():
			return errors.Join(errors.New("no longer a member"), group.Err())
		case <-report.C:
			fmt.Println("succeeded", succeeded.Load(), "failed", failed.Load())
		case <-next.C:
			go func() {
				ctx, cancel := context.WithTimeout(ctx, requestTimeout)
				defer cancel()
				switch _, err := health.NewHealthClient(conn).Check(ctx, &health.HealthCheckRequest{}); {
				case err == nil:
					succeeded.Add(1)
				case ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded):
					failed.Add(1)
					log.Print(err)
				}
			}()
		}
	}
}
