//go:build !linux

package tcp

import (
	"errors"
	"net"
)

// canShare: processes share memory on Linux only. On other systems the members of one
// host use sockets.
const canShare = false

type memory struct{ bytes []byte }

func newMemory(int) (*memory, location, error) { return nil, location{}, errors.ErrUnsupported }

func openMemory(location) (*memory, error) { return nil, errors.ErrUnsupported }

func (*memory) closeFile() {}

func (*memory) release() {}

type doorbell struct{}

func newDoorbell(net.Conn) *doorbell { return nil }

func (*doorbell) ring() {}

func (*doorbell) wait() error { return net.ErrClosed }
