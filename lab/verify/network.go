package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// network is hosts as network namespaces, each with a cable to a switch: a bridge in a
// namespace of its own. A host is cut off by taking its port out of the bridge; neither side
// gets an error.
type network struct {
	name  string
	hosts int
}

// prefix begins the names of namespaces. The number of the process that made them follows.
const prefix = "pleachverify-"

// newNetwork makes hosts that reach each other, and removes those of processes that were
// killed: namespaces outlive the processes that make them.
func newNetwork(hosts int) (*network, error) {
	removeLeftovers()
	n := &network{fmt.Sprint(prefix, os.Getpid()), hosts}
	commands := []string{"netns add " + n.name}
	for host := range hosts {
		commands = append(commands, "netns add "+n.host(host))
	}
	if err := ip("", commands...); err != nil {
		n.remove()
		return nil, err
	}
	commands = []string{
		"link add name lan type bridge", "link set lan up", "link add name part type bridge",
		"link set part up",
	}
	for host := range hosts {
		commands = append(commands, fmt.Sprintf("link add name port%d type veth peer name eth0 netns %s", host, n.host(host)),
			fmt.Sprintf("link set port%d master lan up", host))
	}
	err := ip(n.name, commands...)
	for host := range hosts {
		if err == nil {
			err = ip(n.host(host), fmt.Sprintf("address add %s/24 dev eth0", n.address(host)), "link set eth0 up",
				"link set lo up")
		}
	}
	if err != nil {
		n.remove()
		return nil, err
	}
	return n, nil
}

func removeLeftovers() {
	entries, _ := os.ReadDir("/run/netns") // there is none before the first namespace
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), prefix)
		pid, _, _ := strings.Cut(rest, "-")
		if _, err := os.Stat("/proc/" + pid); ours && os.IsNotExist(err) {
			_ = ip("", "netns del "+e.Name())
		}
	}
}

func (n *network) host(host int) string { return fmt.Sprintf("%s-%d", n.name, host) }

func (n *network) address(host int) string { return fmt.Sprintf("10.78.0.%d", host+1) }

// command is a command on a host. It becomes the command's process, so that signals arrive. It
// dies with this program.
func (n *network) command(host int, args ...string) *exec.Cmd {
	cmd := exec.Command("ip", append([]string{"netns", "exec", n.host(host)}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// cut cuts hosts off from all others, and from each other.
func (n *network) cut(hosts []int) error { return n.ports("nomaster", hosts) }

// part parts hosts from all others; they reach each other.
func (n *network) part(hosts []int) error { return n.ports("master part", hosts) }

// heal ends whatever keeps hosts from the others.
func (n *network) heal(hosts []int) error { return n.ports("master lan", hosts) }

func (n *network) ports(where string, hosts []int) error {
	var commands []string
	for _, host := range hosts {
		commands = append(commands, fmt.Sprintf("link set port%d %s", host, where))
	}
	return ip(n.name, commands...)
}

// nobody is an Ethernet address that no host has.
const nobody = "02:00:00:00:00:ff"

// sever cuts the link between two hosts, and no other: each takes an address that nobody has for
// that of the other.
func (n *network) sever(a, b int) error {
	return n.neighbors("replace %s lladdr "+nobody+" nud permanent dev eth0", a, b)
}

// join ends sever.
func (n *network) join(a, b int) error { return n.neighbors("del %s dev eth0", a, b) }

func (n *network) neighbors(command string, a, b int) error {
	return errors.Join(ip(n.host(a), fmt.Sprintf("neigh "+command, n.address(b))),
		ip(n.host(b), fmt.Sprintf("neigh "+command, n.address(a))))
}

// remove removes the hosts. What is not there is no error.
func (n *network) remove() {
	commands := []string{"netns del " + n.name}
	for host := range n.hosts {
		commands = append(commands, "netns del "+n.host(host))
	}
	_ = ip("", commands...)
}

// ip runs commands of ip in a namespace or, without a name, in this one.
func ip(namespace string, commands ...string) error {
	args := []string{"-force", "-batch", "-"}
	if namespace != "" {
		args = append([]string{"-netns", namespace}, args...)
	}
	cmd := exec.Command("ip", args...)
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("verify: ip in %q: %w: %s", namespace, err, bytes.TrimSpace(out))
	}
	return nil
}
