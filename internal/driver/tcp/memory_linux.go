package tcp

// Memory that two processes of one host share is a memfd: a file that exists only in
// memory and has no name, so that nothing is left of it when both processes are gone,
// however they end. The second process opens it by the descriptor of the first, in
// /proc. That works only if both see the same processes, and if the system lets the one
// look into the other, that is, if both run as the same user.

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"unsafe"
)

const (
	memfdName = "pleach"
	// sealed is what nobody may do any more: change the size. Otherwise the peer could
	// take pages away, and an access to them would end this process by SIGBUS.
	sealed = sealShrink | sealGrow

	// Constants that package syscall does not have.
	memfdCloexec, memfdAllowSealing, memfdNoexecSeal = 1, 2, 8
	addSeals, getSeals                               = 1033, 1034
	sealShrink, sealGrow                             = 2, 4
)

// memfdCreate has the number of the system call memfd_create, 0 if it is not known.
var memfdCreate = map[string]uintptr{
	"amd64": 319, "386": 356, "arm64": 279, "arm": 385, "riscv64": 279, "loong64": 279,
	"ppc64": 360, "ppc64le": 360, "s390x": 350,
}[runtime.GOARCH]

// canShare is whether processes can share memory on this system.
var canShare = memfdCreate != 0

// memory is mapped memory. It is unmapped by release.
type memory struct {
	bytes []byte
	fd    int // -1: closed.
}

// newMemory makes memory for two rings of a size, and returns how the peer finds it. The
// descriptor stays open until closeFile.
func newMemory(ringSize int) (m *memory, at location, err error) {
	fd, err := createMemfd()
	if err != nil {
		return nil, at, err
	}
	m = &memory{fd: fd}
	at = location{pid: uint32(os.Getpid()), fd: uint32(fd), ringSize: uint32(ringSize)}
	_, _ = rand.Read(at.nonce[:])
	if err = syscall.Ftruncate(fd, int64(at.size())); err == nil {
		_, err = fcntl(fd, addSeals, sealed)
	}
	if err == nil {
		err = m.mmap(at.size(), 0)
	}
	if err != nil {
		m.release()
		return nil, at, err
	}
	copy(m.bytes, at.nonce[:])
	return m, at, nil
}

// openMemory opens memory that a peer has made. The nonce proves that it is the same.
func openMemory(at location) (m *memory, err error) {
	path := fmt.Sprintf("/proc/%d/fd/%d", at.pid, at.fd)
	// What is opened must not be another file: opening one can have effects.
	if target, err := os.Readlink(path); err != nil || !strings.HasPrefix(target, "/memfd:"+memfdName) {
		return nil, errors.Join(errors.New("the peer's memory cannot be seen from here"), err)
	}
	fd, err := syscall.Open(path, syscall.O_RDWR|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	m, err = &memory{fd: fd}, os.NewSyscallError("open", err)
	defer m.closeFile()
	if err == nil {
		err = checkMemfd(fd, at.size())
	}
	if err == nil {
		// The pages are taken now: without memory there is an error here, and no signal
		// later.
		err = os.NewSyscallError("fallocate", syscall.Fallocate(fd, 0, 0, int64(at.size())))
	}
	if err == nil {
		err = m.mmap(at.size(), syscall.MAP_POPULATE)
	}
	if err == nil && string(m.bytes[:len(at.nonce)]) != string(at.nonce[:]) {
		err = errors.New("it is not the peer's memory")
	}
	if err != nil {
		m.release()
		return nil, err
	}
	return m, nil
}

func createMemfd() (int, error) {
	name, err := syscall.BytePtrFromString(memfdName)
	if err != nil {
		return -1, err
	}
	flags := uintptr(memfdCloexec | memfdAllowSealing | memfdNoexecSeal)
	fd, _, errno := syscall.Syscall(memfdCreate, uintptr(unsafe.Pointer(name)), flags, 0)
	if errno == syscall.EINVAL { // Before Linux 6.3.
		fd, _, errno = syscall.Syscall(memfdCreate, uintptr(unsafe.Pointer(name)), flags&^memfdNoexecSeal, 0)
	}
	if errno != 0 {
		return -1, os.NewSyscallError("memfd_create", errno)
	}
	return int(fd), nil
}

// checkMemfd returns an error if a file is not memory of this user that has this size and
// keeps it.
func checkMemfd(fd, size int) error {
	seals, err := fcntl(fd, getSeals, 0)
	if err != nil {
		return err
	}
	var stat syscall.Stat_t
	if err := syscall.Fstat(fd, &stat); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	switch {
	case seals&sealed != sealed:
		return errors.New("its size is not sealed")
	case stat.Size != int64(size):
		return fmt.Errorf("it has %d bytes, want %d", stat.Size, size)
	case int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("it belongs to user %d", stat.Uid)
	}
	return nil
}

func fcntl(fd, command, arg int) (int, error) {
	r, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), uintptr(command), uintptr(arg))
	if errno != 0 {
		return 0, os.NewSyscallError("fcntl", errno)
	}
	return int(r), nil
}

func (m *memory) mmap(size, flags int) (err error) {
	m.bytes, err = syscall.Mmap(m.fd, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|flags)
	return os.NewSyscallError("mmap", err)
}

// closeFile closes the descriptor. The memory stays mapped.
func (m *memory) closeFile() {
	_ = syscall.Close(m.fd) // refused if it is closed
	m.fd = -1
}

// release unmaps the memory. An access to it afterwards ends the process.
func (m *memory) release() {
	m.closeFile()
	if m.bytes != nil {
		_ = syscall.Munmap(m.bytes)
		m.bytes = nil
	}
}
