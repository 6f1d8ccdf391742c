package bootstrap

import (
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/pleach-go/pleach/protocol"
)

// DefaultPort is the first port of derived addresses if PLEACH_PORT is not set. No
// known service is near it, and it is below the ephemeral ports.
const DefaultPort = 27600

// maxAddressFile bounds the size of the file: MaxSize long host names fit.
const maxAddressFile = 64 << 20

// addresses returns the addresses that are set by hand, and their variable. Without
// any, both are zero.
func (env environment) addresses() (list []string, variable string, err error) {
	if text := env("PLEACH_ADDRESSES"); text != "" {
		variable = "PLEACH_ADDRESSES"
		list = splitAddresses(text)
	} else if name := env("PLEACH_ADDRESS_FILE"); name != "" {
		variable = "PLEACH_ADDRESS_FILE"
		text, err := readAddressFile(name)
		if err != nil {
			return nil, variable, &VariableError{Name: variable, Value: name, Problem: "cannot read addresses", Err: err}
		}
		list = splitAddresses(text)
	} else {
		return nil, "", nil
	}
	if err := checkAddresses(list); err != nil {
		return nil, variable, &VariableError{Name: variable, Value: env(variable), Problem: err.Error()}
	}
	return list, variable, nil
}

// rendezvous reads where rank 0 tells all processes the addresses, unless they are given.
func (env environment) rendezvous(addresses []string) (string, error) {
	const name = "PLEACH_RENDEZVOUS"
	at := env(name)
	if at == "" || addresses != nil {
		return "", nil
	}
	if err := checkAddresses([]string{at}); err != nil {
		return "", &VariableError{Name: name, Value: at, Problem: err.Error()}
	}
	return at, nil
}

func readAddressFile(name string) (string, error) {
	// Another user's process may name any file, such as a pipe that nobody writes to.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", name)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxAddressFile+1))
	if len(text) > maxAddressFile {
		return "", fmt.Errorf("longer than %d bytes", maxAddressFile)
	}
	return string(text), err
}

// splitAddresses splits at commas and white space, so that a file can have one
// address per line and a variable can be wrapped.
func splitAddresses(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool {
		return r == ',' || r == ' ' || r == '\n' || r == '\r' ||
			r == '\t'
	})
}

func checkAddresses(list []string) error {
	if len(list) == 0 || len(list) > MaxSize {
		return fmt.Errorf("%d addresses: it must be 1 to %d", len(list), MaxSize)
	}
	ranks := make(map[string]int, len(list))
	for rank, address := range list {
		host, port, err := net.SplitHostPort(address)
		if err != nil || host == "" {
			return fmt.Errorf("%q is not an address: write host:port", address)
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("%q: the port must be a number from 1 to 65535", address)
		}
		if other, ok := ranks[address]; ok {
			return fmt.Errorf("%q is the address of rank %d and of rank %d: every member needs one of its own", address,
				other, rank)
		}
		ranks[address] = rank
	}
	return nil
}

// port returns the first port of derived addresses. The largest port derived from it
// is most higher.
func (env environment) port(most int) (int, error) {
	if env("PLEACH_PORT") == "" && most <= 65535-DefaultPort {
		return DefaultPort, nil
	}
	n, err := env.number("PLEACH_PORT", 1, int64(65535-most))
	return int(n), err
}

// onOneHost derives the addresses of the processes of a group that all run on this host.
func (env environment) onOneHost(group string, size protocol.Rank) ([]string, error) {
	if size > 65535 {
		return nil, nil // more than there are ports: Check asks for addresses
	}
	port, err := env.port(int(size) - 1)
	if err != nil {
		return nil, err
	}
	host := "127.0.0.1"
	if env("PLEACH_PORT") == "" {
		host = loopback(group, runtime.GOOS)
	}
	list := make([]string, size)
	for rank := range list {
		list[rank] = address(host, port+rank)
	}
	return list, nil
}

// loopback returns the address of this host that the processes of a group use. Linux has all
// of 127.0.0.0/8, so that two jobs with the same ports do not collide.
func loopback(group, system string) string {
	if group == "" || system != "linux" {
		return "127.0.0.1"
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(group))
	sum := h.Sum32()
	return netip.AddrFrom4([4]byte{127, 64 | byte(sum>>16)&63, byte(sum >> 8), byte(sum)}).String()
}

func address(host string, port int) string {
	return net.JoinHostPort(host, strconv.Itoa(port))
}
