package netns

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// ip runs commands of ip, all in one process, in a namespace or, without a name,
// in this one. One that fails does not keep it from the others: what can be
// removed is.
func ip(namespace string, commands ...string) error {
	args := []string{"-force", "-batch", "-"}
	if namespace != "" {
		args = append([]string{"-netns", namespace}, args...)
	}
	cmd := exec.Command("ip", args...)
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("netns: ip in %q: %w: %s", namespace, err, bytes.TrimSpace(out))
	}
	return nil
}

// Available says why there can be no hosts here, or nil.
func Available() error { return available() }

// available tries it once: a container's root may not be allowed to, and a kernel
// may lack bridges.
var available = sync.OnceValue(func() error {
	if os.Getuid() != 0 {
		return errors.New("netns: network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return fmt.Errorf("netns: install iproute2: %w", err)
	}
	name := newName()
	if err := ip("", "netns add "+name); err != nil {
		return err
	}
	return errors.Join(
		ip(name, "link add name try type bridge", "link add name one type veth peer name two"),
		ip("", "netns del "+name),
	)
})
