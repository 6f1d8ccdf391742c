package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pleach-go/pleach/agent/client"
)

// Two agents of the Helm chart, with a Lease as their arbiter and with the EndpointSlices of their
// service as seeds. One of them is killed, again and again: the other one has to continue. Then the
// same without the API server: the other one has to stop until it is back.

const (
	pairKills = 20 // of each agent
	pairSet   = "pair"
	pairKey   = "pair"
	pairPace  = 2 * time.Millisecond // of questions to agents
)

// pairDeath is an agent that was killed with SIGKILL, and how long it took until the other one was
// alone in its view, and until it had written a key, in seconds.
type pairDeath struct {
	Pod    string  `json:"pod"`
	Leader bool    `json:"leader"`
	Alone  float64 `json:"alone"`
	Key    float64 `json:"key"`
}

// pairStop is the death of an agent while the API server is stopped.
type pairStop struct {
	Stopped   float64 `json:"stopped"`   // seconds from the death until the other one said that it has no quorum
	Refused   int     `json:"refused"`   // its writes meanwhile
	Accepted  int     `json:"accepted"`  // its writes meanwhile
	Logged    bool    `json:"logged"`    // it has logged that the arbiter does not answer
	Lived     bool    `json:"lived"`     // its process is the same as before
	Continued float64 `json:"continued"` // seconds from the first answer of the API server until it had written a key
}

// pairOutcome is what the scenario has shown.
type pairOutcome struct {
	Deaths   []pairDeath `json:"deaths"`
	Leaders  int         `json:"two_leaders"` // times at which both were
	LostKeys int         `json:"lost_keys"`
	Stop     pairStop    `json:"stop"`
}

// pair is a running scenario.
type pair struct {
	*cluster
	outcome pairOutcome
	written int                    // the value of the key
	clients map[int]*client.Client // of processes
	chart   string                 // the manifest
}

// runPair runs the scenario, and prints what it has shown.
func (c *cluster) runPair(ctx context.Context, asJSON bool) error {
	p := &pair{cluster: c, clients: make(map[int]*client.Client)}
	if err := p.begin(ctx); err != nil {
		return err
	}
	watched := watchReigns(ctx, p.agents)
	var err error
	for i := 0; err == nil && i < 2*pairKills; i++ {
		err = p.kill(ctx, i%2)
	}
	if err == nil {
		err = p.killWithoutServer(ctx)
	}
	p.outcome.Leaders = watched.stop()
	err = errors.Join(err, p.remove(ctx), p.restartKubelets(""))
	text, encoding := json.MarshalIndent(p.outcome, "", "  ")
	if !asJSON {
		text = []byte(p.outcome.String())
	}
	fmt.Println(string(text))
	return errors.Join(err, encoding)
}

// begin installs the chart.
func (p *pair) begin(ctx context.Context) error {
	if err := errors.Join(p.restartKubelets(restartAtOnce), p.prepare(ctx)); err != nil {
		return err
	}
	repository, tag, _ := strings.Cut(pleachImage, ":")
	manifest, err := command(ctx, "", nil, p.program("helm"), "template", "--kube-version", "1.34.1", pairSet,
		"deploy/helm/pleach", "--set",
		"replicas=2,expect=2,arbiter.lease=pair,seeds.endpointSlice=true,image.repository="+repository,
		"--set-string", "image.tag="+tag)
	if err != nil {
		return fmt.Errorf("run this at the root of the repository: %w", err)
	}
	p.chart = manifest
	if err := p.apply(ctx, manifest); err != nil {
		return err
	}
	if err := p.awaitReady(ctx, pairSet); err != nil {
		return err
	}
	_, err = p.whole(ctx)
	return err
}

// remove removes the chart: the service of statefulset.yaml would select its pods, too.
func (p *pair) remove(ctx context.Context) error {
	_, err := p.kubectl(ctx, strings.NewReader(p.chart), "delete", "--wait", "-f", "-")
	return err
}

func podOf(i int) string { return fmt.Sprint(pairSet, "-", i) }

// dial returns a client of an agent, at its socket in its pod.
func (a agent) dial() *client.Client {
	return client.Socket(fmt.Sprintf("/proc/%d/root/run/pleach/agent.sock", a.pid))
}

// client returns the client of a process, the same one each time: each has a connection.
func (p *pair) client(a agent) *client.Client {
	if p.clients[a.pid] == nil {
		p.clients[a.pid] = a.dial()
	}
	return p.clients[a.pid]
}

// whole waits until both agents are ready members of one view, and returns them.
func (p *pair) whole(ctx context.Context) (both [2]agent, err error) {
	err = await(ctx, "both agents are ready members", func() bool {
		all := p.agents(ctx)
		for i := range both {
			a, ok := all[podOf(i)]
			if !ok || members(ctx, p.client(a)) != 2 || p.client(a).Ready(ctx) != nil {
				return false
			}
			both[i] = a
		}
		return true
	})
	return both, err
}

// members returns the number of members in the view of an agent; 0: it does not answer.
func members(ctx context.Context, c *client.Client) int {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	m, err := c.Members(ctx)
	if err != nil {
		return 0
	}
	return len(m.Members)
}

// put writes the key.
func (p *pair) put(ctx context.Context, c *client.Client) error {
	_, err := c.Put(ctx, pairKey, strconv.AppendInt(nil, int64(p.written+1), 10), nil, 5*time.Second)
	if err == nil {
		p.written++
	}
	return err
}

// checkKey counts the key as lost if an agent does not have what was written last.
func (p *pair) checkKey(ctx context.Context, c *client.Client) {
	if p.written == 0 {
		return
	}
	e, err := c.Get(ctx, pairKey, 10*time.Second)
	if err != nil || e.Data != strconv.Itoa(p.written) {
		p.outcome.LostKeys++
	}
}

// kill kills the agent in a pod, and waits until the other one continues.
func (p *pair) kill(ctx context.Context, victim int) error {
	both, err := p.whole(ctx)
	if err != nil {
		return err
	}
	other := p.client(both[1-victim])
	for _, a := range both {
		p.checkKey(ctx, p.client(a))
	}
	m, err := other.Members(ctx)
	if err != nil {
		return err
	}
	death := pairDeath{Pod: podOf(victim), Leader: m.Leader != m.Self}
	began := time.Now()
	if err := syscall.Kill(both[victim].pid, syscall.SIGKILL); err != nil {
		return err
	}
	alone := func() bool { return members(ctx, other) == 1 }
	if err := poll(ctx, "the other agent is alone in its view", alone); err != nil {
		return err
	}
	death.Alone = time.Since(began).Seconds()
	if err := poll(ctx, "the other agent writes a key", func() bool { return p.put(ctx, other) == nil }); err != nil {
		return err
	}
	death.Key = time.Since(began).Seconds()
	fmt.Fprintf(os.Stderr, "%s %s is killed: alone after %.3f s, a key after %.3f s\n", time.Now().Format(time.TimeOnly),
		death.Pod, death.Alone, death.Key)
	p.outcome.Deaths = append(p.outcome.Deaths, death)
	return nil
}

// poll waits as await does, with short pauses.
func poll(ctx context.Context, what string, condition func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !condition() {
		sleep(ctx, pairPace)
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", what, ctx.Err())
		}
	}
	return nil
}

// killWithoutServer stops the API server, kills an agent, and starts the server again. The kubelet of
// the agent's node is stopped meanwhile: it would start the agent again.
func (p *pair) killWithoutServer(ctx context.Context) error {
	both, err := p.whole(ctx)
	if err != nil {
		return err
	}
	victim, other, kubelet := both[0], both[1], nodeName(both[0].node)+".kubelet"
	if err := p.signal(kubelet, syscall.SIGSTOP); err != nil {
		return err
	}
	err = errors.Join(p.stopWithoutServer(ctx, victim, p.client(other)), p.signal(kubelet, syscall.SIGCONT))
	if err != nil {
		return err
	}
	after, err := p.whole(ctx)
	p.outcome.Stop.Lived = after[1].pid == other.pid
	p.outcome.Stop.Logged = p.logged("the arbiter does not answer")
	return err
}

func (p *pair) stopWithoutServer(ctx context.Context, victim agent, other *client.Client) error {
	stop := &p.outcome.Stop
	if err := p.cluster.kill("kube-apiserver"); err != nil {
		return err
	}
	began := time.Now()
	if err := syscall.Kill(victim.pid, syscall.SIGKILL); err != nil {
		return err
	}
	err := poll(ctx, "the other agent has no quorum", func() bool {
		s, err := other.Status(ctx)
		return err == nil && !s.Quorum.OK
	})
	if err != nil {
		return err
	}
	stop.Stopped = time.Since(began).Seconds()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if _, err := other.Put(ctx, pairKey+"-stopped", []byte("x"), nil, time.Second); err == nil {
			stop.Accepted++
			continue
		}
		stop.Refused++
		sleep(ctx, pairPace)
	}
	if err := p.startAPIServer(ctx); err != nil {
		return err
	}
	answered := time.Now()
	if err := poll(ctx, "the other agent writes a key", func() bool { return p.put(ctx, other) == nil }); err != nil {
		return err
	}
	stop.Continued = time.Since(answered).Seconds()
	return nil
}

// logged reports whether an agent of the pair has logged a text.
func (p *pair) logged(text string) bool {
	logs, _ := filepath.Glob(p.path("node*", "logs", "default_"+pairSet+"-*", "agent", "*.log"))
	return slices.ContainsFunc(logs, func(file string) bool {
		log, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(log), text)
	})
}

// String is the outcome for people.
func (o *pairOutcome) String() string {
	var b strings.Builder
	for _, leader := range []bool{true, false} {
		var alone, key []float64
		for _, d := range o.Deaths {
			if d.Leader == leader {
				alone, key = append(alone, d.Alone), append(key, d.Key)
			}
		}
		if len(alone) > 0 {
			slices.Sort(alone)
			slices.Sort(key)
			fmt.Fprintf(&b, "%d kills (leader: %v): alone after %.3f s (median), %.3f s (slowest), a key after %.3f s, %.3f s\n",
				len(alone), leader, alone[len(alone)/2], alone[len(alone)-1], key[len(key)/2], key[len(key)-1])
		}
	}
	fmt.Fprintf(&b, "two leaders: %d times, lost keys: %d\nwithout the API server: %+v", o.Leaders, o.LostKeys, o.Stop)
	return b.String()
}
