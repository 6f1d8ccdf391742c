// Package etcd runs clusters of etcd's servers, to compare Pleach with them. It needs Debian's
// package etcd-server.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Cluster is etcd's servers on this host, as processes. They write their logs to its temporary
// directory.
type Cluster struct {
	// URLs are those of the servers, for clients.
	URLs []string

	folder  string
	servers []*exec.Cmd
}

// startTimeout is how long servers may take to find each other.
const startTimeout = 30 * time.Second

// Start starts servers, and waits until they have a leader.
func Start(ctx context.Context, servers int) (*Cluster, error) {
	folder, err := os.MkdirTemp("", "pleach-bench-etcd-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{folder: folder}
	addresses, err := freeAddresses(2 * servers)
	if err == nil {
		err = c.start(addresses[:servers], addresses[servers:])
	}
	if err == nil {
		err = c.awaitLeader(ctx)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// start starts servers that talk to each other at peers, and to clients at addresses.
func (c *Cluster) start(peers, addresses []string) error {
	var cluster []string
	for i, peer := range peers {
		cluster = append(cluster, fmt.Sprintf("m%d=http://%s", i, peer))
	}
	for i := range peers {
		url, peer := "http://"+addresses[i], "http://"+peers[i]
		cmd := exec.Command("etcd", "--name", fmt.Sprint("m", i), "--data-dir", filepath.Join(c.folder, fmt.Sprint(i)),
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--listen-client-urls", url,
			"--advertise-client-urls", url,
			"--initial-cluster", strings.Join(cluster, ","), "--initial-cluster-state", "new", "--log-level", "panic")
		if err := cmd.Start(); err != nil {
			return err
		}
		c.servers, c.URLs = append(c.servers, cmd), append(c.URLs, url)
	}
	return nil
}

// freeAddresses returns addresses of this host that nobody listens on.
func freeAddresses(n int) (addresses []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}

// awaitLeader waits until every server knows its leader.
func (c *Cluster) awaitLeader(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, url := range c.URLs {
		for healthy(ctx, url) != nil {
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
				return fmt.Errorf("etcd: no leader: %w", ctx.Err())
			}
		}
	}
	return nil
}

// errUnhealthy is the error of a server without a leader.
var errUnhealthy = errors.New("etcd: unhealthy")

// healthy asks a server whether it has a leader.
func healthy(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/health", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errUnhealthy
	}
	return nil
}

// Close ends the servers and removes what they have written.
func (c *Cluster) Close() {
	for _, s := range c.servers {
		_ = s.Process.Kill()
		_ = s.Wait()
	}
	_ = os.RemoveAll(c.folder)
}
