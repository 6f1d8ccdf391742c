package order

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/pleach-go/pleach/lab/bench/etcd"
)

// puts puts messages to etcd: one of a thousand keys each.
type puts struct {
	cluster *etcd.Cluster
	client  *http.Client
	done    atomic.Int64
}

// keys is how many keys are put in turns.
const keys = 1000

func startEtcd(ctx context.Context, members int) (Started, error) {
	cluster, err := etcd.Start(ctx, members)
	if err != nil {
		return nil, err
	}
	return &puts{cluster: cluster, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}, nil
}

// Send puts a message by the server of a member.
func (p *puts) Send(ctx context.Context, m int, data []byte) error {
	key := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "key-%d", p.done.Load()%keys))
	body := fmt.Appendf(nil, `{"key":%q,"value":%q}`, key, base64.StdEncoding.EncodeToString(data))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.cluster.URLs[m]+"/v3/kv/put", bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("etcd: %s: %.100s", response.Status, text)
	}
	if err == nil {
		p.done.Add(1)
	}
	return err
}

// Received returns how many puts are done: etcd does not tell when a server has applied one.
func (p *puts) Received(int) int { return int(p.done.Load()) }

// Await returns at once: a put that has returned is done.
func (p *puts) Await(ctx context.Context) error { return ctx.Err() }

// Close ends the servers.
func (p *puts) Close() {
	p.client.CloseIdleConnections()
	p.cluster.Close()
}
