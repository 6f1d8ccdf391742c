package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// nodes is the number of nodes.
const nodes = 3

// The network of the control plane and the nodes. Node i has podNet(i) for its pods.
const (
	controlSpace   = "pleach-kc"
	controlAddress = "10.77.0.1"
	serviceNet     = "10.78.0.0/24"
	serverAddress  = "10.78.0.1" // of the service of the API server
)

func nodeName(i int) string    { return fmt.Sprint("node", i) }
func nodeSpace(i int) string   { return fmt.Sprint("pleach-kn", i) }
func nodeAddress(i int) string { return fmt.Sprint("10.77.0.", 10+i) }
func podNet(i int) string      { return fmt.Sprintf("10.77.%d.0/24", i) }

// cluster is a cluster whose files are in a directory: programs in bin, what runs in run.
type cluster struct{ directory string }

func newCluster(directory string) (*cluster, error) {
	absolute, err := filepath.Abs(directory)
	return &cluster{absolute}, err
}

// path returns the path of a file of the running cluster.
func (c *cluster) path(elements ...string) string {
	return filepath.Join(append([]string{c.directory, "run"}, elements...)...)
}

func (c *cluster) program(name string) string { return filepath.Join(c.directory, "bin", name) }

// up starts everything, and returns when all nodes are ready.
func (c *cluster) up(ctx context.Context) error {
	if os.Getuid() != 0 {
		return errors.New("a cluster needs network namespaces and control groups: be root")
	}
	if _, err := os.Stat(c.path()); err == nil {
		return fmt.Errorf("%s exists: a cluster is running, or has ended badly; end it by: kubernetes down %s",
			c.path(), c.directory)
	}
	for _, step := range []func(context.Context) error{
		c.makeNetwork, c.startControl, c.startNodes, c.importImages, c.awaitNodes,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// enter returns the beginning of a command in a network namespace. ip netns exec would mount another
// /sys, without the control groups.
func enter(space string) []string { return []string{"nsenter", "--net=/run/netns/" + space} }

// command runs a command in a network namespace, and returns what it prints.
func command(ctx context.Context, space string, in io.Reader, args ...string) (string, error) {
	if space != "" {
		args = append(enter(space), args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// start starts a process that outlives this one, in a network namespace. Its output and its process
// ID are in files of its name.
func (c *cluster) start(space, name string, args ...string) error {
	log, err := os.Create(c.path(name + ".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	args = append(enter(space), args...)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = c.path()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	return os.WriteFile(c.path(name+".pid"), fmt.Append(nil, cmd.Process.Pid), 0o644)
}

// kill ends a process that start has started.
func (c *cluster) kill(name string) error { return c.signal(name, syscall.SIGKILL) }

// signal sends a signal to a process that start has started.
func (c *cluster) signal(name string, s syscall.Signal) error {
	text, err := os.ReadFile(c.path(name + ".pid"))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		return err
	}
	return syscall.Kill(pid, s)
}

// kubectl runs kubectl with some input.
func (c *cluster) kubectl(ctx context.Context, in io.Reader, args ...string) (string, error) {
	args = append([]string{c.program("kubectl"), "--kubeconfig", c.path("kubeconfig")}, args...)
	return command(ctx, controlSpace, in, args...)
}

// patience is how long a step of a scenario may take.
const patience = 3 * time.Minute

// await waits until a condition holds.
func await(ctx context.Context, what string, condition func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for pace := time.Tick(100 * time.Millisecond); !condition(); {
		select {
		case <-pace:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		}
	}
	return nil
}
