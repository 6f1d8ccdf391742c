//go:build !unix

package bootstrap

import (
	"fmt"
	"net"
)

func inheritedListener(fd int, _ string) (net.Listener, error) {
	return nil, &VariableError{
		Name: "PLEACH_LISTEN_FD", Value: fmt.Sprint(fd),
		Problem: "this system has no sockets to inherit",
	}
}
