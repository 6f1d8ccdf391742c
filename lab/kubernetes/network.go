package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// makeNetwork makes a namespace for the control plane, with a bridge, and one for each node, which
// is a router for its pods.
func (c *cluster) makeNetwork(ctx context.Context) error {
	script := []string{
		"ip netns add " + controlSpace,
		in(controlSpace, "ip link set lo up"),
		in(controlSpace, "ip link add lan type bridge"),
		in(controlSpace, "ip addr add "+controlAddress+"/24 dev lan"),
		in(controlSpace, "ip addr add "+serverAddress+"/32 dev lan"),
		in(controlSpace, "ip link set lan up"),
	}
	for i := 1; i <= nodes; i++ {
		script = append(script,
			"ip netns add "+nodeSpace(i),
			fmt.Sprintf("ip link add eth0 netns %s type veth peer name %s netns %s", nodeSpace(i), nodeName(i), controlSpace),
			in(controlSpace, fmt.Sprintf("ip link set %s master lan up", nodeName(i))),
			in(controlSpace, fmt.Sprintf("ip route add %s via %s", podNet(i), nodeAddress(i))),
			in(nodeSpace(i), "ip link set lo up"),
			in(nodeSpace(i), fmt.Sprintf("ip addr add %s/24 dev eth0", nodeAddress(i))),
			in(nodeSpace(i), "ip link set eth0 up"),
			in(nodeSpace(i), "ip route add default via "+controlAddress),
			in(nodeSpace(i), "sysctl -q -w net.ipv4.ip_forward=1"),
		)
		for j := 1; j <= nodes; j++ {
			if j != i {
				script = append(script, in(nodeSpace(i), fmt.Sprintf("ip route add %s via %s", podNet(j), nodeAddress(j))))
			}
		}
	}
	return shell(ctx, script...)
}

// in returns a command that runs in a namespace.
func in(space, command string) string { return strings.Join(enter(space), " ") + " " + command }

// shell runs commands one after the other.
func shell(ctx context.Context, script ...string) error {
	for _, line := range script {
		if _, err := command(ctx, "", nil, strings.Fields(line)...); err != nil {
			return err
		}
	}
	return nil
}

// cut takes a node off the network, and heal connects it again.
func (c *cluster) cut(ctx context.Context, node int) error {
	return shell(ctx, in(controlSpace, fmt.Sprintf("ip link set %s down", nodeName(node))))
}

func (c *cluster) heal(ctx context.Context, node int) error {
	return shell(ctx, in(controlSpace, fmt.Sprintf("ip link set %s up", nodeName(node))))
}

// groupRoots returns the directories of a node's control groups, one for each hierarchy.
func groupRoots(node int) ([]string, error) {
	all, err := filepath.Glob("/sys/fs/cgroup/*")
	var roots []string
	for _, hierarchy := range all {
		if info, err := os.Lstat(hierarchy); err == nil && info.IsDir() {
			roots = append(roots, filepath.Join(hierarchy, nodeSpace(node)))
		}
	}
	return roots, err
}
