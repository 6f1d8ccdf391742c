package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A scenario is something that happens to pods, to nodes or to the control plane. It ends when
// all pods should be ready again.
type scenario struct {
	name string
	act  func(c *cluster, ctx context.Context) error
}

// scenarios are run in this order, on the same group.
var scenarios = []scenario{
	{"three pods begin", (*cluster).begin},
	{"rolling update", (*cluster).rollingUpdate},
	{"a node is drained, with the budget", (*cluster).drain},
	{"a node is cut off for 30 s", (*cluster).cutNode},
	{"a node loses its power", (*cluster).losePower},
	{"SIGKILL of all agents", (*cluster).killAgents},
	{"all pods are deleted", (*cluster).deleteAll},
	{"3, 5, 1, 5, 3 replicas", (*cluster).scale},
	{"a pod is deleted while no name resolves, for a minute", (*cluster).loseNames},
	{"a Deployment joins and is updated", (*cluster).deploy},
	{"agents under full load for 30 s stay ready", (*cluster).flood},
}

// runScenarios runs those whose names contain one of the arguments, or all, or with "pair" that of
// two agents. With --json it prints JSON instead of a table.
func (c *cluster) runScenarios(ctx context.Context, args []string) error {
	names := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--json" })
	if slices.Contains(names, "pair") {
		return c.runPair(ctx, len(names) < len(args))
	}
	if err := c.start(controlSpace, "collect", c.program("kubernetes"), "collect"); err != nil {
		return err
	}
	var all []outcome
	for _, s := range scenarios {
		chosen := len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return strings.Contains(s.name, n) })
		if !chosen || ctx.Err() != nil {
			continue
		}
		fmt.Fprintln(os.Stderr, time.Now().Format(time.TimeOnly), s.name)
		all = append(all, c.runScenario(ctx, &s))
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if len(names) == len(args) {
		text = []byte(table(all))
	}
	fmt.Println(string(text))
	return errors.Join(err, c.kill("collect"), ctx.Err())
}

func (c *cluster) runScenario(ctx context.Context, s *scenario) outcome {
	o := outcome{Name: s.name}
	began, restarts := time.Now(), c.restarts(ctx)
	err := s.act(c, ctx)
	if err == nil {
		err = c.awaitReady(ctx, "pleach")
	}
	ready := time.Now()
	o.Seconds = ready.Sub(began).Seconds()
	sleep(ctx, 2*settled)
	all, loading := c.load(began, time.Now())
	if err := errors.Join(err, loading); err != nil {
		o.Error = err.Error()
	}
	judge(&o, all)
	o.Restarts = max(0, c.restarts(ctx)-restarts) // pods that were deleted take theirs with them
	return o
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// awaitReady waits until the pods of a StatefulSet are as many as wanted, up to date and ready.
func (c *cluster) awaitReady(ctx context.Context, set string) error {
	return await(ctx, "all pods are ready", func() bool {
		out, err := c.kubectl(ctx, nil, "get", "statefulset", set, "-o",
			"jsonpath={.spec.replicas} {.status.readyReplicas} {.status.updatedReplicas} {.status.replicas} "+
				"{.metadata.generation} {.status.observedGeneration}")
		f := strings.Fields(out)
		return err == nil && len(f) == 6 && f[0] == f[1] && f[0] == f[2] && f[0] == f[3] && f[4] == f[5] && c.nodesReady(ctx)
	})
}

func (c *cluster) nodesReady(ctx context.Context) bool {
	out, err := c.kubectl(ctx, nil, "get", "nodes", "--no-headers")
	return err == nil && strings.Count(out, " Ready") == nodes
}

// restarts counts the restarts of containers.
func (c *cluster) restarts(ctx context.Context) (n int) {
	out, _ := c.kubectl(ctx, nil, "get", "pods", "-o", "jsonpath={.items[*].status.containerStatuses[*].restartCount}")
	for _, count := range numbers(out) {
		n += count
	}
	return n
}

// apply applies a manifest.
func (c *cluster) apply(ctx context.Context, manifest string) error {
	_, err := c.kubectl(ctx, strings.NewReader(manifest), "apply", "-f", "-")
	return err
}

// begin applies the manifest, with traffic next to each agent.
func (c *cluster) begin(ctx context.Context) error {
	if err := c.prepare(ctx); err != nil {
		return err
	}
	manifest, err := os.ReadFile("deploy/kubernetes/statefulset.yaml")
	if err != nil {
		return fmt.Errorf("run this at the root of the repository: %w", err)
	}
	return c.apply(ctx, withTraffic(string(manifest)))
}

// prepare makes what the agents need: a secret, the strictest pod security, and volumes that all may
// write to, as provisioners of small clusters make them.
func (c *cluster) prepare(ctx context.Context) error {
	_, _ = c.kubectl(ctx, nil, "create", "secret", "generic", "pleach", "--from-literal=secret="+strings.Repeat("x", 32))
	_, err := c.kubectl(ctx, nil, "label", "--overwrite", "namespace", "default",
		"pod-security.kubernetes.io/enforce=restricted")
	if err != nil {
		return err
	}
	volumes, err := c.volumes()
	if err != nil {
		return err
	}
	return c.apply(ctx, volumes)
}

// withTraffic adds traffic to the pod of the agent.
func withTraffic(manifest string) string {
	image := strings.Index(manifest, "image: pleach")
	end := image + strings.Index(manifest[image:], "\n")
	manifest = manifest[:image] + "image: " + pleachImage + manifest[end:]
	return strings.Replace(manifest, "      containers:\n", fmt.Sprintf(`      containers:
        - name: traffic
          image: %s
          command: [/usr/bin/kubernetes, traffic, $(POD_NAME), /run/pleach/agent.sock, "%s"]
          env: [{name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
          securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
          volumeMounts: [{name: socket, mountPath: /run/pleach}]
`, testImage, collectorAddress), 1)
}

// volumes returns three volumes of mode 0777 for each node, for claims that name no class.
func (c *cluster) volumes() (string, error) {
	text := `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
`
	for node := 1; node <= nodes; node++ {
		for i := range 3 {
			directory := c.path(nodeName(node), "volumes", fmt.Sprint(i))
			if err := os.MkdirAll(directory, 0o777); err != nil {
				return "", err
			}
			if err := os.Chmod(directory, 0o777); err != nil {
				return "", err
			}
			text += fmt.Sprintf(`apiVersion: v1
kind: PersistentVolume
metadata: {name: %s-%d}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: local
  hostPath: {path: %q}
  nodeAffinity:
    required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]}]}
---
`, nodeName(node), i, directory, nodeName(node))
		}
	}
	return text, nil
}

func (c *cluster) rollingUpdate(ctx context.Context) error {
	_, err := c.kubectl(ctx, nil, "rollout", "restart", "statefulset/pleach")
	return err
}

func (c *cluster) drain(ctx context.Context) error {
	_, err := c.kubectl(ctx, nil, "drain", nodeName(2), "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=90s")
	sleep(ctx, 5*time.Second)
	_, back := c.kubectl(ctx, nil, "uncordon", nodeName(2))
	return errors.Join(err, back)
}

func (c *cluster) cutNode(ctx context.Context) error {
	if err := c.cut(ctx, 2); err != nil {
		return err
	}
	sleep(ctx, 30*time.Second)
	return c.heal(ctx, 2)
}

func (c *cluster) losePower(ctx context.Context) error {
	if err := c.killNode(ctx, 3); err != nil {
		return err
	}
	sleep(ctx, 20*time.Second)
	return c.startNode(ctx, 3)
}

func (c *cluster) killAgents(ctx context.Context) error {
	for _, a := range c.agents(ctx) {
		_ = syscall.Kill(a.pid, syscall.SIGKILL)
	}
	sleep(ctx, 2*time.Second) // until Kubernetes knows
	return nil
}

// agent is the process of an agent in a pod, or of a program next to it.
type agent struct {
	pod       string
	node, pid int
}

// agents returns all agents, by their pods.
func (c *cluster) agents(ctx context.Context) map[string]agent {
	return c.programs(ctx, "/usr/bin/pleach\x00agent", "PLEACH_ID=")
}

// programs returns the processes whose command line begins with command, by their pods, whose names
// are in a variable of their environment.
func (c *cluster) programs(ctx context.Context, command, name string) map[string]agent {
	all := make(map[string]agent)
	for node := 1; node <= nodes; node++ {
		for _, pid := range c.processesOf(ctx, node) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if !strings.HasPrefix(string(line), command) {
				continue
			}
			environment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			for variable := range strings.SplitSeq(string(environment), "\x00") {
				if pod, ok := strings.CutPrefix(variable, name); ok {
					all[pod] = agent{pod, node, pid}
				}
			}
		}
	}
	return all
}

func (c *cluster) deleteAll(ctx context.Context) error {
	_, err := c.kubectl(ctx, nil, "delete", "pods", "-l", "app.kubernetes.io/name=pleach")
	return err
}

func (c *cluster) scale(ctx context.Context) error {
	for _, n := range []int{5, 1, 5, 3} {
		if _, err := c.kubectl(ctx, nil, "scale", "statefulset/pleach", fmt.Sprint("--replicas=", n)); err != nil {
			return err
		}
		if err := c.awaitReady(ctx, "pleach"); err != nil {
			return fmt.Errorf("%d replicas: %w", n, err)
		}
	}
	return nil
}

func (c *cluster) loseNames(ctx context.Context) error {
	if err := c.kill("coredns"); err != nil {
		return err
	}
	_, err := c.kubectl(ctx, nil, "delete", "pod", "pleach-1")
	sleep(ctx, time.Minute)
	return errors.Join(err, c.startDNS())
}

// deploy adds pods without identities to the group, replaces them, and takes them away.
func (c *cluster) deploy(ctx context.Context) error {
	manifest, err := os.ReadFile("deploy/kubernetes/statefulset.yaml")
	if err != nil {
		return err
	}
	if err := c.apply(ctx, deploymentOf(withTraffic(string(manifest)))); err != nil {
		return err
	}
	defer func() {
		_, _ = c.kubectl(ctx, nil, "delete", "deployment", "web", "--wait")
	}()
	for _, args := range [][]string{
		{"rollout", "status", "deployment/web", "--timeout=120s"},
		{"rollout", "restart", "deployment/web"},
		{"rollout", "status", "deployment/web", "--timeout=120s"},
	} {
		if _, err := c.kubectl(ctx, nil, args...); err != nil {
			return err
		}
	}
	return nil
}

// flood has the traffic of all pods send as much as their agents take: their probes are still answered
// in time.
func (c *cluster) flood(ctx context.Context) error {
	began := time.Now()
	for _, p := range c.programs(ctx, "/usr/bin/kubernetes\x00traffic", "POD_NAME=") {
		if err := syscall.Kill(p.pid, syscall.SIGUSR1); err != nil {
			return err
		}
	}
	sleep(ctx, floodTime+time.Second)
	if err := c.flooded(began); err != nil {
		return err
	}
	out, err := c.kubectl(ctx, nil, "get", "pods", "-l", "app.kubernetes.io/name=pleach", "-o",
		`jsonpath={.items[*].status.conditions[?(@.type=="Ready")].lastTransitionTime}`)
	for since := range strings.FieldsSeq(out) {
		if changed, wrong := time.Parse(time.RFC3339, since); wrong != nil || changed.After(began) {
			err = errors.Join(err, wrong, fmt.Errorf("a pod was not ready at %s", since))
		}
	}
	return err
}

// flooded returns an error unless all three pods have sent a flood.
func (c *cluster) flooded(began time.Time) error {
	all, err := c.load(began, time.Now())
	pods := make(map[string]uint64)
	for _, r := range all {
		if r.Kind == recordFlooded && r.N > 0 {
			pods[r.Pod] = r.N
		}
	}
	fmt.Fprintln(os.Stderr, "messages of 16 KiB that agents have taken:", pods)
	if err == nil && len(pods) != 3 {
		err = fmt.Errorf("%d pods have sent a flood, want 3", len(pods))
	}
	return err
}

// deploymentOf makes a Deployment of two pods from the StatefulSet: the same pods without a name that
// stays, and without a volume.
func deploymentOf(manifest string) string {
	_, set, _ := strings.Cut(manifest, "kind: StatefulSet\n")
	set, _, _ = strings.Cut(set, "  volumeClaimTemplates:")
	for _, change := range [][2]string{
		{"  name: pleach\n", "  name: web\n"},
		{"  serviceName: pleach\n", ""},
		{"  podManagementPolicy: Parallel\n", ""},
		{"  # One after the other, each would wait for the others.\n", ""},
		{"replicas: 3", "replicas: 2"},
		{"app.kubernetes.io/name: pleach", "app.kubernetes.io/name: web"},
		{"      volumes:\n", "      volumes:\n        - {name: data, emptyDir: {}}\n"},
	} {
		set = strings.ReplaceAll(set, change[0], change[1])
	}
	return "apiVersion: apps/v1\nkind: Deployment\n" + set
}
