package netns

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// A long link is two TAP devices, one in the place of a host's cable and one in that of its port,
// and this process between them, which holds back what the host sends. Few kernels of virtual
// machines have sch_netem; TAP needs /dev/net/tun only.

// maxFrame is the longest Ethernet frame of a TAP device with its usual MTU, and maxDelayed how
// many of them are on a link: what comes then is lost, as in a full queue of a router.
const (
	maxFrame   = 2048
	maxDelayed = 1 << 14
)

// Delay gives a host a long link: what it sends arrives at the others a while later. It reports
// whether that can be had here. Addresses that the host has got by AddAddress are gone.
func (n *Net) Delay(host int, d time.Duration) bool {
	n.t.Helper()
	inside, insideName, err := openTAP()
	if err != nil {
		return false
	}
	outside, outsideName, err := openTAP()
	if err != nil {
		_ = inside.Close()
		return false
	}
	n.must(ip(n.name, "link del "+port(host)))
	n.must(ip("",
		fmt.Sprintf("link set %s netns %s name eth0", insideName, n.host(host)),
		fmt.Sprintf("link set %s netns %s name %s", outsideName, n.name, port(host))))
	n.must(ip(n.name, fmt.Sprintf("link set %s master lan up", port(host))))
	n.connect(host)
	n.t.Cleanup(func() {
		_ = inside.Close()
		_ = outside.Close()
	})
	go carry(inside, outside, d)
	go carry(outside, inside, 0)
	return true
}

// openTAP makes a TAP device in this namespace, with a name that the kernel chooses.
func openTAP() (*os.File, string, error) {
	fd, err := syscall.Open("/dev/net/tun", syscall.O_RDWR|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, "", err
	}
	var request struct { // ifreq of netdevice(7)
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}
	copy(request.name[:], "tap%d")
	request.flags = syscall.IFF_TAP | syscall.IFF_NO_PI
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.TUNSETIFF,
		uintptr(unsafe.Pointer(&request))); errno != 0 {
		_ = syscall.Close(fd)
		return nil, "", errno
	}
	name, _, _ := bytes.Cut(request.name[:], []byte{0})
	return os.NewFile(uintptr(fd), "tap"), string(name), nil
}

// carry carries frames from one device to another until one is closed, each after a delay.
func carry(from, to *os.File, d time.Duration) {
	type frame struct {
		due  time.Time
		data []byte
	}
	link := make(chan frame, maxDelayed)
	defer close(link)
	go func() {
		for f := range link {
			time.Sleep(time.Until(f.due))
			_, _ = to.Write(f.data) // a device that is down takes none
		}
	}()
	for buffer := make([]byte, maxFrame); ; {
		size, err := from.Read(buffer)
		if err != nil {
			return
		}
		select {
		case link <- frame{time.Now().Add(d), bytes.Clone(buffer[:size])}:
		default:
		}
	}
}
