package order

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// etcd is a cluster of etcd's servers on this host, which write their logs to its temporary
// folder. A message is a put of one of a thousand keys.
type etcd struct {
	folder  string
	servers []*exec.Cmd
	urls    []string
	client  *http.Client
	puts    atomic.Int64
}

// keys is how many keys are put in turns.
const keys = 1000

func startEtcd(ctx context.Context, members int) (*etcd, error) {
	folder, err := os.MkdirTemp("", "pleach-bench-etcd-")
	if err != nil {
		return nil, err
	}
	e := &etcd{folder: folder, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	addresses, err := freeAddresses(2 * members)
	if err != nil {
		e.close()
		return nil, err
	}
	var cluster []string
	for m := range members {
		cluster = append(cluster, fmt.Sprintf("m%d=http://%s", m, addresses[m]))
	}
	for m := range members {
		url, peer := "http://"+addresses[members+m], "http://"+addresses[m]
		cmd := exec.Command("etcd", "--name", fmt.Sprint("m", m), "--data-dir", filepath.Join(folder, fmt.Sprint(m)),
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--listen-client-urls", url, "--advertise-client-urls", url,
			"--initial-cluster", strings.Join(cluster, ","), "--initial-cluster-state", "new", "--log-level", "panic")
		if err := cmd.Start(); err != nil {
			e.close()
			return nil, err
		}
		e.servers, e.urls = append(e.servers, cmd), append(e.urls, url)
	}
	return e, e.awaitLeader(ctx)
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

// awaitLeader waits until every server puts.
func (e *etcd) awaitLeader(ctx context.Context) error {
	for deadline := time.Now().Add(joinTimeout); ; time.Sleep(50 * time.Millisecond) {
		var err error
		for m := range e.urls {
			if err == nil {
				err = e.send(ctx, m, []byte("ready"))
			}
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			e.close()
			return err
		}
	}
}

func (e *etcd) send(ctx context.Context, m int, data []byte) error {
	key := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "key-%d", e.puts.Load()%keys))
	body := fmt.Appendf(nil, `{"key":%q,"value":%q}`, key, base64.StdEncoding.EncodeToString(data))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.urls[m]+"/v3/kv/put", bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := e.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("etcd: %s: %.100s", response.Status, text)
	}
	if err == nil {
		e.puts.Add(1)
	}
	return err
}

// received returns how many puts are done: etcd does not tell when a server has applied one.
func (e *etcd) received(int) int { return int(e.puts.Load()) }

func (e *etcd) await(ctx context.Context) error { return ctx.Err() }

func (e *etcd) close() {
	e.client.CloseIdleConnections()
	for _, s := range e.servers {
		_ = s.Process.Kill()
		_ = s.Wait()
	}
	_ = os.RemoveAll(e.folder)
}
