package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Agents keep keys in memory. A nemesis restarts them one at a time, each when the one before is
// ready, as a supervisor does: no key is lost then. Clients of the agents' sockets read and write
// keys meanwhile, and every answer is the present one, even that of an agent which was frozen or cut
// off. The clients are this process's.

const (
	keyClients = 2 // of each agent
	keyPause   = 20 * time.Millisecond
	keyLimit   = 2 * time.Second
	readyLimit = time.Minute // a loaded machine is slow; rounds are right or wrong whatever it takes
)

// Faults that restart all agents, one at a time.
const (
	roll       = "rolling restart"
	rollByKill = "rolling restart by kill"
)

// agentsOf returns how many agents a seed's round has.
func agentsOf(seed uint64) int { return 3 + int(seed/3%3) }

// socket is that of the agent of a host.
func (r *round) socket(i int) string { return filepath.Join(r.dir, memberID(i)+".sock") }

// agentArgs are the command line of the agent of a host. Half of the rounds have data directories.
func (r *round) agentArgs(i int, seeds []string) []string {
	args := []string{
		"agent", "--id", memberID(i), "--expect", fmt.Sprint(r.members), "--listen", seeds[i],
		"--socket", r.socket(i),
	}
	if r.seed%2 == 0 {
		args = append(args, "--data-dir", filepath.Join(r.dir, "agent-"+memberID(i)))
	}
	return append(args, seeds...)
}

// rollWith restarts agents one at a time, by a signal. As an operator does, it begins when all are
// ready: of two members without disks, the second one may not be killed.
func rollWith(signal syscall.Signal) func(r *round, hosts []int) error {
	return func(r *round, hosts []int) error {
		r.awaitReady(hosts...)
		for _, i := range hosts {
			if signal == syscall.SIGKILL {
				if err := r.kill(i); err != nil {
					return err
				}
			} else if err := r.end(i); err != nil {
				return err
			}
			if err := r.start(i); err != nil {
				return err
			}
			r.awaitReady(i)
		}
		return nil
	}
}

// awaitReady waits until agents are ready, unless one of the round was not in time.
func (r *round) awaitReady(hosts ...int) {
	if len(r.crashed) > 0 {
		return
	}
	for _, i := range hosts {
		ready := func() bool {
			status, _, err := ask(context.Background(), r.socket(i), http.MethodGet, "/readyz", "")
			return err == nil && status == http.StatusOK
		}
		deadline := time.Now().Add(readyLimit)
		for !ready() && time.Now().Before(deadline) {
			time.Sleep(50 * time.Millisecond)
		}
		if !time.Now().Before(deadline) {
			r.crashed = append(r.crashed, violation{
				rule: "agents become ready", at: observe(), processes: []string{memberID(i)},
				text: fmt.Sprintf("%s is not ready after %v", memberID(i), readyLimit),
			})
			return
		}
	}
}

// ask sends a request to an agent.
func ask(ctx context.Context, socket, method, path, body string) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, keyLimit+time.Second)
	defer cancel()
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}
	q, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	reply, err := (&http.Client{Transport: transport}).Do(q)
	if err != nil {
		return 0, nil, err
	}
	defer reply.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(reply.Body, 1<<20))
	return reply.StatusCode, answer, err
}

// useKeys has clients of all agents read and write keys until the context ends.
func (r *round) useKeys(ctx context.Context) (wait func() error, err error) {
	var running sync.WaitGroup
	var journals []*journal
	for i := range r.hosts {
		for n := range keyClients {
			name := fmt.Sprintf("client-%d-%d", i, n)
			j, err := openJournal(filepath.Join(r.dir, name+".jsonl"))
			if err != nil {
				return nil, err
			}
			journals = append(journals, j)
			r.processes = append(r.processes, name)
			c := &keyClient{name: name, socket: r.socket(i), journal: j, random: rand.New(rand.NewPCG(r.seed, uint64(10*i+n)))}
			running.Go(func() { c.run(ctx) })
		}
	}
	return func() (err error) {
		running.Wait()
		for _, j := range journals {
			err = errors.Join(err, j.file.Close())
		}
		return err
	}, nil
}

// keyClient reads and writes the keys of one agent.
type keyClient struct {
	name, socket string
	journal      *journal
	random       *rand.Rand
}

func (c *keyClient) run(ctx context.Context) {
	for op := 1; pause(ctx, keyPause); op++ {
		e := Event{Type: evCall, Op: op, Key: c.random.IntN(keys), Write: c.random.IntN(2) == 0}
		if e.Write {
			e.Value = fmt.Sprint(c.name, "-", op)
		}
		c.journal.write(e)
		value, ok := c.do(ctx, e)
		if !ok {
			continue
		}
		c.journal.write(Event{Type: evReturn, Op: op, Key: e.Key, Write: e.Write, Value: value})
	}
	c.journal.write(Event{Type: evEnd})
}

// do does one call. It reports false if it is not known what has become of it.
func (c *keyClient) do(ctx context.Context, e Event) (value string, ok bool) {
	method, path := http.MethodGet, fmt.Sprintf("/v1/kv/key-%d?timeout=%s", e.Key, url.QueryEscape(keyLimit.String()))
	if e.Write {
		method = http.MethodPut
	}
	status, answer, err := ask(ctx, c.socket, method, path, e.Value)
	switch {
	case err != nil:
		return "", false
	case e.Write:
		return e.Value, status == http.StatusOK
	case status == http.StatusNotFound:
		return "", true
	}
	var entry struct {
		Data string `json:"data"`
	}
	if status != http.StatusOK || json.Unmarshal(answer, &entry) != nil {
		return "", false
	}
	return entry.Data, true
}

// playAgents runs agents and the nemesis, and returns what the clients have seen.
func (r *round) playAgents() ([]*history, error) {
	all := r.all()
	r.awaitReady(all...)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	wait, err := r.useKeys(ctx)
	if err != nil {
		return nil, err
	}
	err = r.disturb(r.plan)
	r.awaitReady(all...)
	time.Sleep(2 * time.Second) // the clients ask all agents again
	stop()
	if err = errors.Join(err, wait()); err != nil {
		return nil, err
	}
	_ = r.leave(nil)
	agents := r.processes
	r.processes = nil
	for _, p := range agents {
		if _, err := os.Stat(filepath.Join(r.dir, p+".jsonl")); err == nil {
			r.processes = append(r.processes, p)
		}
	}
	return r.read()
}

// all returns all hosts.
func (r *round) all() (hosts []int) {
	for i := range r.hosts {
		hosts = append(hosts, i)
	}
	return hosts
}

// checkKeys: a key that was written is there from then on. Nobody deletes one.
func (c *checker) checkKeys() {
	written := map[int]int64{}
	c.eachCall(func(k call) {
		if at, ok := written[k.Key]; k.Write && k.answered > 0 && (!ok || k.answered < at) {
			written[k.Key] = k.answered
		}
	})
	c.eachCall(func(k call) {
		if at, ok := written[k.Key]; !k.Write && k.answered > 0 && k.result == "" && ok && at < k.At {
			c.violated("keys outlive gated restarts", k.At, []string{k.process},
				"%s does not find key %d, which was written before", k.process, k.Key)
		}
	})
}
