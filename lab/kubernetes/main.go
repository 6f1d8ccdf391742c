// Kubernetes starts a Kubernetes cluster of three nodes on this machine, and runs the manifests of
// deploy/kubernetes on it under load while pods and nodes come and go. It measures what the users of
// a group in a cluster would see: messages that are lost or delivered twice, and time without a quorum.
//
//	kubernetes up bin/cluster          # starts the cluster, as root
//	kubernetes run bin/cluster         # runs all scenarios, and prints a table
//	kubernetes run bin/cluster pair    # kills agents of a group of two with an arbiter
//	kubernetes kubectl bin/cluster get pods
//	kubernetes down bin/cluster
//
// The control plane and each node have a network namespace of their own. Each node has a containerd
// and a kubelet. build.sh builds what is not in Debian.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubernetes:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: kubernetes up|down|run|kubectl DIRECTORY [ARGUMENT ...]")

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	// These run in pods.
	switch args[0] {
	case "pause":
		<-ctx.Done()
		return nil
	case "traffic":
		return traffic(ctx, args[1:])
	case "collect": // in the namespace of the control plane
		return serveCollector()
	}
	if len(args) < 2 {
		return errUsage
	}
	c, err := newCluster(args[1])
	if err != nil {
		return err
	}
	switch args[0] {
	case "up":
		return c.up(ctx)
	case "down":
		return c.down(ctx)
	case "kubectl":
		out, err := c.kubectl(ctx, nil, args[2:]...)
		fmt.Print(out)
		return err
	case "run":
		return c.runScenarios(ctx, args[2:])
	}
	return errUsage
}
