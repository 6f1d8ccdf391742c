package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

func (c *cluster) startNodes(ctx context.Context) error {
	for i := 1; i <= nodes; i++ {
		if err := c.startNode(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// startNode starts a node's containerd and its kubelet.
func (c *cluster) startNode(ctx context.Context, i int) error {
	dir := c.path(nodeName(i))
	if err := makeGroups(i); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"containerd.toml": fmt.Sprintf(containerdConfig, dir, dir, dir, dir),
		"cni/10.conflist": fmt.Sprintf(networkConfig, podNet(i)),
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	// A file of an earlier containerd that was killed.
	_ = os.Remove(filepath.Join(dir, "containerd.sock"))
	err := c.start(nodeSpace(i), nodeName(i)+".containerd", "containerd",
		"--config", filepath.Join(dir, "containerd.toml"))
	if err != nil {
		return err
	}
	if err := await(ctx, "containerd answers", func() bool {
		_, err := c.containers(ctx, i, "version")
		return err == nil
	}); err != nil {
		return err
	}
	return c.startKubelet(i, "")
}

// startKubelet starts a node's kubelet with settings besides its own.
func (c *cluster) startKubelet(i int, settings string) error {
	dir := c.path(nodeName(i))
	config := fmt.Sprintf(kubeletConfig, nodeSpace(i), dir, controlAddress, dir) + settings
	file := filepath.Join(dir, "kubelet.yaml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return err
	}
	return c.start(nodeSpace(i), nodeName(i)+".kubelet", c.program("kubelet"), "--config="+file,
		"--kubeconfig="+c.path("kubeconfig"), "--root-dir="+filepath.Join(dir, "kubelet"),
		"--hostname-override="+nodeName(i), "--node-ip="+nodeAddress(i),
		"--node-labels=topology.kubernetes.io/zone=zone"+fmt.Sprint(i))
}

// restartKubelets starts the kubelets of all nodes again, with settings besides their own. Containers
// run on.
func (c *cluster) restartKubelets(settings string) error {
	for i := 1; i <= nodes; i++ {
		if err := c.kill(nodeName(i) + ".kubelet"); err != nil {
			return err
		}
		if err := c.startKubelet(i, settings); err != nil {
			return err
		}
	}
	return nil
}

// containers runs ctr, which talks to a node's containerd.
func (c *cluster) containers(ctx context.Context, node int, args ...string) (string, error) {
	args = append([]string{"ctr", "-a", c.path(nodeName(node), "containerd.sock"), "-n", "k8s.io"}, args...)
	return command(ctx, "", nil, args...)
}

// makeGroups makes control groups for all that runs on a node: kubelets of several nodes would end
// each other's pods otherwise.
func makeGroups(node int) error {
	roots, err := groupRoots(node)
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := os.MkdirAll(root, 0o755); err != nil {
			return err
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // empty in a new group
			if value, err := os.ReadFile(filepath.Join(filepath.Dir(root), file)); err == nil {
				if err := os.WriteFile(filepath.Join(root, file), value, 0o644); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// killNode kills all processes of a node at once, as a power failure does.
func (c *cluster) killNode(ctx context.Context, node int) error {
	return await(ctx, "all processes of "+nodeName(node)+" have ended", func() bool {
		pids := c.processesOf(ctx, node)
		for _, pid := range pids { // and those that they have just started, in the next round
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return len(pids) == 0
	})
}

// processesOf returns the processes in a node's network namespace and in its control groups.
func (c *cluster) processesOf(ctx context.Context, node int) (pids []int) {
	text, _ := command(ctx, "", nil, "ip", "netns", "pids", nodeSpace(node)) // there may be no such namespace
	pids = numbers(text)
	groups := filepath.Join("/sys/fs/cgroup/memory", nodeSpace(node))
	_ = filepath.WalkDir(groups, func(path string, _ os.DirEntry, err error) error {
		if err == nil && filepath.Base(path) == "cgroup.procs" {
			if text, err := os.ReadFile(path); err == nil {
				pids = append(pids, numbers(string(text))...)
			}
		}
		return nil
	})
	return pids
}

func numbers(text string) (all []int) {
	for _, field := range strings.Fields(text) {
		var n int
		if _, err := fmt.Sscan(field, &n); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// awaitNodes waits until all nodes are ready.
func (c *cluster) awaitNodes(ctx context.Context) error {
	return await(ctx, "all nodes are ready", func() bool {
		out, err := c.kubectl(ctx, nil, "get", "nodes", "--no-headers")
		return err == nil && strings.Count(out, " Ready ") == nodes
	})
}

// down ends everything, and removes what up has made.
func (c *cluster) down(ctx context.Context) error {
	for i := 1; i <= nodes; i++ {
		if err := c.killNode(ctx, i); err != nil {
			return err
		}
	}
	for _, name := range []string{"coredns", "kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"} {
		_ = c.kill(name) // it may have ended
	}
	c.unmount()
	for i := 1; i <= nodes; i++ {
		removeGroups(i)
		_, _ = command(ctx, "", nil, "ip", "netns", "del", nodeSpace(i))
	}
	_, _ = command(ctx, "", nil, "ip", "netns", "del", controlSpace)
	return os.RemoveAll(c.path())
}

// unmount unmounts what kubelets and containerds have mounted, the last one first.
func (c *cluster) unmount() {
	text, _ := os.ReadFile("/proc/self/mounts")
	lines := bytes.Split(text, []byte("\n"))
	for i := len(lines) - 1; i >= 0; i-- {
		if fields := strings.Fields(string(lines[i])); len(fields) > 1 && strings.HasPrefix(fields[1], c.path()+"/") {
			_ = syscall.Unmount(fields[1], syscall.MNT_DETACH)
		}
	}
}

// removeGroups removes the control groups of a node, from the inside out.
func removeGroups(node int) {
	roots, _ := groupRoots(node)
	for _, root := range roots {
		var dirs []string
		_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		for i := len(dirs) - 1; i >= 0; i-- {
			_ = syscall.Rmdir(dirs[i])
		}
	}
}

// The sandboxes' network namespaces are mounted in the node's directory, so that down removes them. The
// score of the out-of-memory killer cannot be lowered without CAP_SYS_RESOURCE.
const containerdConfig = `version = 2
root = "%s/containerd"
state = "%s/state"
[grpc]
  address = "%s/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/test:1"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "%s/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
`

const networkConfig = `{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "pods", "isGateway": true, "hairpinMode": true, "ipam":
    {"type": "host-local", "ranges": [[{"subnet": "%s"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "loopback"}
]}
`

// restartAtOnce is for containers that are killed again and again. By default, a kubelet waits for up
// to five minutes.
const restartAtOnce = `crashLoopBackOff: {maxContainerRestartPeriod: 1s}
featureGates: {KubeletCrashLoopBackOffMax: true}
`

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /%s
failSwapOn: false
failCgroupV1: false
containerRuntimeEndpoint: unix://%s/containerd.sock
clusterDNS: [%s]
clusterDomain: cluster.local
enforceNodeAllocatable: []
evictionHard: {memory.available: 100Mi}
podLogsDir: %s/logs
nodeStatusUpdateFrequency: 3s
resolvConf: ""
`
