package netns

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// Net is a number of hosts that can reach each other.
type Net struct {
	t    testing.TB
	name string
	size int
}

// maxHosts is as many ports as a bridge of Linux has.
const maxHosts = 1000

// New makes hosts 0 to n-1. They are removed after the test, together with those
// of earlier tests that could not clean up. Where [Available] says no, the test is
// skipped.
func New(t testing.TB, n int) *Net {
	t.Helper()
	if err := Available(); err != nil {
		t.Skip(err)
	}
	if n < 1 || n > maxHosts {
		t.Fatalf("netns: %d hosts: choose 1 to %d", n, maxHosts)
	}
	net := &Net{t: t, name: newName(), size: n}
	net.must(remove(leftovers()))
	t.Cleanup(func() { net.must(remove(net.namespaces())) })
	commands := make([]string, 0, n+1)
	for _, name := range net.namespaces() {
		commands = append(commands, "netns add "+name)
	}
	net.must(ip("", commands...))
	net.must(ip(net.name, "link add name lan type bridge", "link set lan up", "link add name part type bridge",
		"link set part up"))
	for host := range n {
		net.plug(host)
	}
	return net
}

// plug gives a host its cable, with a port on the bridge at the other end.
func (n *Net) plug(host int) {
	n.t.Helper()
	port := port(host)
	n.must(ip(n.name,
		fmt.Sprintf("link add name %s type veth peer name eth0 netns %s", port, n.host(host)),
		fmt.Sprintf("link set %s master lan up", port)))
	n.connect(host)
}

// connect gives a host its address at the end of its cable.
func (n *Net) connect(host int) {
	n.t.Helper()
	n.must(ip(n.host(host),
		fmt.Sprintf("address add %s/16 dev eth0", n.Address(host)),
		"link set eth0 up", "link set lo up"))
}

// Address is a host's.
func (n *Net) Address(host int) string { return fmt.Sprintf("10.77.%d.%d", host/250, host%250+1) }

// AddAddress gives a host another address, as in 10.0.0.1/24.
func (n *Net) AddAddress(host int, address string) {
	n.t.Helper()
	n.must(ip(n.host(host), fmt.Sprintf("address add %s dev eth0", address)))
}

// Command is a command to be run on a host. It becomes the command's process
// itself, so that signals sent to it arrive.
func (n *Net) Command(host int, name string, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", n.host(host), name}, args...)...)
}

// Kill kills all processes of a host.
func (n *Net) Kill(host int) {
	n.t.Helper()
	pids, err := exec.Command("ip", "netns", "pids", n.host(host)).Output()
	n.must(err)
	for _, pid := range strings.Fields(string(pids)) {
		number, err := strconv.Atoi(pid)
		n.must(err)
		if p, err := os.FindProcess(number); err == nil {
			_ = p.Kill() // it may have ended
		}
	}
}

// Cut cuts a host off from all others. Packets are dropped without an error.
func (n *Net) Cut(host int) {
	n.t.Helper()
	n.must(ip(n.name, fmt.Sprintf("link set %s nomaster", port(host))))
}

// Heal ends whatever keeps a host from those that are not cut off themselves.
func (n *Net) Heal(host int) {
	n.t.Helper()
	n.plugInto("lan", []int{host})
}

// Partition parts hosts from all others; they still reach each other. It adds to
// an earlier partition.
func (n *Net) Partition(hosts ...int) {
	n.t.Helper()
	n.plugInto("part", hosts)
}

// Drop drops whatever a host sends to another one, but not what that one sends to it.
// Packets are dropped without an error.
func (n *Net) Drop(from, to int) {
	n.t.Helper()
	n.must(ip(n.host(from), fmt.Sprintf("neighbor replace %s lladdr 02:00:00:00:00:01 nud permanent dev eth0",
		n.Address(to))))
}

// HealAll ends all cuts and the partition.
func (n *Net) HealAll() {
	n.t.Helper()
	hosts := make([]int, n.size)
	for host := range hosts {
		hosts[host] = host
	}
	n.plugInto("lan", hosts)
}

func (n *Net) plugInto(bridge string, hosts []int) {
	n.t.Helper()
	commands := make([]string, len(hosts))
	for i, host := range hosts {
		commands[i] = fmt.Sprintf("link set %s master %s", port(host), bridge)
	}
	n.must(ip(n.name, commands...))
}

func (n *Net) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// host is the name of a host's namespace; the network's own is that of the bridge.
func (n *Net) host(host int) string { return fmt.Sprintf("%s-%d", n.name, host) }

func (n *Net) namespaces() []string {
	names := []string{n.name}
	for host := range n.size {
		names = append(names, n.host(host))
	}
	return names
}

func port(host int) string { return fmt.Sprintf("port%d", host) }

// remove deletes namespaces. Their processes, should there be any, live on in
// namespaces without names and cables.
func remove(names []string) error {
	if len(names) == 0 {
		return nil
	}
	commands := make([]string, len(names))
	for i, name := range names {
		commands[i] = "netns del " + name
	}
	return ip("", commands...)
}
