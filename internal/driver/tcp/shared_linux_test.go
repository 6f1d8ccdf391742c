package tcp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// testShared is the limit for shared memory in tests.
const testShared = 16 << 20

// shareMemory sends numbered frames between two members until both use shared memory. It
// returns how many each has sent.
func shareMemory(t testing.TB, a, b *member) (sent int) {
	t.Helper()
	connect(t, a, b)
	connect(t, b, a)
	eventually(t, "shared memory", func() bool {
		for range 64 {
			if a.Stats().Shared > 0 && b.Stats().Shared > 0 {
				return true
			}
			sendNumber(t, a, b, sent)
			sendNumber(t, b, a, sent)
			sent++
		}
		return false
	})
	return sent
}

func sendNumber(t testing.TB, from, to *member, n int) {
	t.Helper()
	mustSend(t, from, to.cfg.Rank, binary.BigEndian.AppendUint32(nil, uint32(n)))
}

// checkNumbers waits for numbered frames after the first one, and checks their order.
func checkNumbers(t testing.TB, at, from *member, count int) {
	t.Helper()
	eventually(t, "frames", func() bool { return len(at.received(from.cfg.Rank)) >= count+1 })
	for i, frame := range at.received(from.cfg.Rank)[1 : count+1] {
		if got := binary.BigEndian.Uint32(frame); got != uint32(i) {
			t.Fatalf("frame %d is %d", i, got)
		}
	}
}

// mappedHere counts the shared memory that this process has mapped.
func mappedHere(t testing.TB) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(maps), "/memfd:"+memfdName)
}

func TestSharedMemory(t *testing.T) {
	ca := testutil.NewCA(t)
	for name, cfg := range map[string]Config{
		"plain":  {SharedBytes: testShared, shareInside: true},
		"TLS":    {SharedBytes: testShared, shareInside: true, TLS: ca.Config(t, ca)},
		"secret": {SharedBytes: testShared, shareInside: true, Secret: []byte("a secret of some length")},
	} {
		t.Run(name, func(t *testing.T) {
			m := startGroup(t, 2, cfg)
			sent := shareMemory(t, m[0], m[1])
			long := bytes.Repeat([]byte("pleach"), 100_000)
			for i := range m {
				sendNumber(t, m[i], m[1-i], sent)
				mustSend(t, m[i], protocol.Rank(1-i), long)
			}
			for i := range m {
				checkNumbers(t, m[i], m[1-i], sent+1)
				eventually(t, "a long frame", func() bool { return len(m[i].received(protocol.Rank(1-i))) == sent+3 })
				if !bytes.Equal(m[i].received(protocol.Rank(1 - i))[sent+2], long) {
					t.Error("the long frame differs")
				}
			}
			// What was sent before Close arrives.
			for i := range 1000 {
				sendNumber(t, m[0], m[1], i)
			}
			if err := m[0].Close(); err != nil {
				t.Error(err)
			}
			eventually(t, "the last frames", func() bool { return len(m[1].received(0)) == sent+1003 })
			_ = m[1].Close()
			if m[0].mapped.Load() != 0 || m[1].mapped.Load() != 0 || mappedHere(t) != 0 {
				t.Errorf("%d and %d bytes are still mapped, %d places", m[0].mapped.Load(), m[1].mapped.Load(), mappedHere(t))
			}
		})
	}
}

// Memory is shared where one side sends much, be it the one that offers memory or the other.
func TestOneSideSharesMemory(t *testing.T) {
	for from := range 2 {
		m := startGroup(t, 2, Config{SharedBytes: testShared, shareInside: true})
		connect(t, m[0], m[1])
		connect(t, m[1], m[0])
		eventually(t, "shared memory", func() bool {
			for range 100 {
				_ = m[from].Send(protocol.Rank(1-from), []byte("frame"))
			}
			return m[0].Stats().Shared == 1 && m[1].Stats().Shared == 1
		})
	}
}

// Members that may not share memory use the socket, and lose nothing.
func TestSharedMemoryIsDeclined(t *testing.T) {
	for name, limits := range map[string][2]int{"one side off": {testShared, 0}, "offerer's limit": {
		100 << 10,
		testShared,
	}, "other's limit": {testShared, 100 << 10}, "in one process": {testShared, testShared}} {
		t.Run(name, func(t *testing.T) {
			checkGoroutines(t)
			listeners, addresses := listen(t, 2)
			m := make([]*member, 2)
			for i := range m {
				m[i] = start(t, Config{
					Rank: protocol.Rank(i), Addresses: addresses, Listener: listeners[i], SharedBytes: limits[i],
					shareInside: name != "in one process",
				})
			}
			connect(t, m[0], m[1])
			connect(t, m[1], m[0])
			for n := range 2000 {
				sendNumber(t, m[0], m[1], n)
				sendNumber(t, m[1], m[0], n)
			}
			checkNumbers(t, m[0], m[1], 2000)
			checkNumbers(t, m[1], m[0], 2000)
			eventually(t, "no memory", func() bool { return m[0].mapped.Load() == 0 && m[1].mapped.Load() == 0 })
			if a, b := m[0].Stats().Shared, m[1].Stats().Shared; a != 0 || b != 0 {
				t.Errorf("%d and %d connections use shared memory", a, b)
			}
		})
	}
}

// Two members that send as much as they can while they change to short rings wait for space
// from the first moment on. A doorbell that is rung for that may reach a member on the socket,
// together with the control message that makes it one. No connection is lost by it.
func TestBusyMembersChangeToSharedMemory(t *testing.T) {
	for range 8 {
		m := startGroup(t, 2, Config{SharedBytes: 8 * 80 << 10, shareInside: true})
		connect(t, m[0], m[1])
		var sending sync.WaitGroup
		for i := range m {
			sending.Go(func() {
				frame := make([]byte, 30<<10)
				for end := time.Now().Add(time.Minute); time.Now().Before(end); {
					if m[0].Stats().Shared == 1 && m[1].Stats().Shared == 1 {
						break
					}
					if m[i].Send(protocol.Rank(1-i), frame) != nil {
						time.Sleep(20 * time.Microsecond) // The queue is full.
					}
				}
			})
		}
		sending.Wait()
		sent := shareMemory(t, m[0], m[1])
		eventually(t, "the last frames", func() bool { return len(m[0].received(1)) > sent && len(m[1].received(0)) > sent })
		for i := range m {
			if story := m[i].story(protocol.Rank(1 - i)); strings.Contains(story, "down") {
				t.Fatalf("%s: %v", story, m[i].lastCause(protocol.Rank(1-i)))
			}
		}
		for _, one := range m {
			_ = one.Close()
		}
	}
}

// A peer that writes to positions loses the connection, and nothing else happens.
func TestSharedMemoryIsDamaged(t *testing.T) {
	m := startGroup(t, 2, Config{SharedBytes: testShared, shareInside: true})
	sent := shareMemory(t, m[0], m[1])
	p := m[0].peer(1)
	eventually(t, "frames go to the ring", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.conn.ring != nil
	})
	sendNumber(t, m[0], m[1], sent)
	checkNumbers(t, m[1], m[0], sent+1)
	p.mu.Lock()
	s := p.conn.shared.Load()
	s.out.produced.Add(1 << 40)
	s.doorbell.ring()
	p.mu.Unlock()
	eventually(t, "down", func() bool { return errors.Is(m[1].lastCause(0), errRing) })
	eventually(t, "a new connection", func() bool { return m[1].Send(0, []byte("again")) == nil })
}

// Connections that use shared memory are closed when they are idle, without a loss.
func TestIdleSharedMemoryIsReturned(t *testing.T) {
	m := startGroup(t, 2, Config{SharedBytes: testShared, shareInside: true})
	sent := shareMemory(t, m[0], m[1])
	checkNumbers(t, m[1], m[0], sent)
	eventually(t, "closed", func() bool {
		m[0].retireIdle(0)
		return m[0].Stats().Shared == 0 && m[1].Stats().Shared == 0
	})
	eventually(t, "unmapped", func() bool { return mappedHere(t) == 0 })
	sendNumber(t, m[0], m[1], sent)
	checkNumbers(t, m[1], m[0], sent+1)
}

// Pollers and the reader share a ring, and no frame waits for the next one.
func TestSharedMemoryIsPolled(t *testing.T) {
	m := startGroup(t, 2, Config{SharedBytes: testShared, shareInside: true})
	sent := shareMemory(t, m[0], m[1])
	checkNumbers(t, m[1], m[0], sent)
	var pollers sync.WaitGroup
	defer pollers.Wait()
	for i := range 2 {
		pollers.Go(func() {
			for end := time.Now().Add(time.Second); time.Now().Before(end); {
				for range rand.IntN(50) {
					m[1].Poll(0)
				}
				if i == 0 {
					m[1].Rest()
				}
				time.Sleep(time.Duration(rand.IntN(100)) * time.Microsecond)
			}
		})
	}
	for n := range 500 {
		sendNumber(t, m[0], m[1], sent+n)
		checkNumbers(t, m[1], m[0], sent+n+1)
	}
}

// A poller may be the one that reads the control message by which the peer changes to
// shared memory, and then the system does not wake the reader for it, which still waits on
// the socket. The reader is woken for the next frame even if no poller comes again.
func TestPollersChangeToSharedMemory(t *testing.T) {
	for range 6 {
		m := startGroup(t, 2, Config{SharedBytes: testShared, shareInside: true})
		var busy sync.WaitGroup
		var over atomic.Bool
		for range runtime.GOMAXPROCS(0) { // The scheduler rarely asks the system which sockets have bytes.
			busy.Go(func() {
				for !over.Load() {
					runtime.Gosched()
				}
			})
		}
		busy.Go(func() { pollUntilShared(m[1].peer(0)) })
		sent := shareMemory(t, m[0], m[1])
		over.Store(true)
		busy.Wait()
		sendNumber(t, m[0], m[1], sent)
		checkNumbers(t, m[1], m[0], sent+1)
		for _, one := range m {
			_ = one.Close()
		}
	}
}

// pollUntilShared polls until frames are read from shared memory, or for a minute.
func pollUntilShared(p *peer) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		p.mu.Lock()
		c := p.conn
		p.mu.Unlock()
		if c == nil {
			continue
		}
		c.poll()
		c.polls.mu.Lock()
		shared := c.polls.ring != nil
		c.polls.mu.Unlock()
		if shared {
			return
		}
	}
}

func TestOpenMemoryRefuses(t *testing.T) {
	m, at, err := newMemory(minRing)
	if err != nil {
		t.Fatal(err)
	}
	defer m.release()
	open := func(what string, change func(*location)) {
		l := at
		change(&l)
		if got, err := openMemory(l); err == nil {
			got.release()
			t.Errorf("%s was opened", what)
		}
	}
	open("memory with another nonce", func(l *location) { l.nonce[3]++ })
	open("memory of another size", func(l *location) { l.ringSize *= 2 })
	open("a part of memory", func(l *location) { l.ringSize /= 2 })
	open("another descriptor", func(l *location) { l.fd = 0 })
	open("another process", func(l *location) { l.pid = 1 << 22 })
	fd, err := createMemfd()
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := syscall.Ftruncate(fd, int64(at.size())); err != nil {
		t.Fatal(err)
	}
	if _, err := syscall.Pwrite(fd, at.nonce[:], 0); err != nil {
		t.Fatal(err)
	}
	open("memory that can shrink", func(l *location) { l.fd = uint32(fd) })
	got, err := openMemory(at)
	if err != nil {
		t.Fatal(err)
	}
	got.release()
}

// killed is how many processes TestSharedMemoryOfKilledProcesses kills.
func killed() int {
	if testutil.Full.On() {
		return 1000
	}
	return 20
}

const killedAddresses = "PLEACH_TEST_KILLED"

// A process is killed while it sends through shared memory. All frames that arrive are
// whole and in order, its peer notices, and nothing is left.
func TestSharedMemoryOfKilledProcesses(t *testing.T) {
	if addresses := os.Getenv(killedAddresses); addresses != "" {
		sendUntilKilled(t, strings.Split(addresses, ","))
		return
	}
	before := sharedFiles(t)
	shared := 0
	for range killed() {
		if killSender(t) {
			shared++
		}
	}
	if shared == 0 {
		t.Error("no process was killed while it used shared memory")
	}
	if after := sharedFiles(t); after > before {
		t.Errorf("/dev/shm has %d files, %d before", after, before)
	}
	if n := mappedHere(t); n != 0 {
		t.Errorf("memory is mapped at %d places", n)
	}
	t.Logf("%d of %d processes were killed while they used shared memory", shared, killed())
}

func sharedFiles(t *testing.T) int {
	entries, err := os.ReadDir("/dev/shm")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return len(entries)
}

// killSender starts a process that sends, kills it, and checks what has arrived. It
// reports whether that process used shared memory.
func killSender(t *testing.T) (shared bool) {
	listeners, addresses := listen(t, 2)
	theirs, err := listeners[1].(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	_ = listeners[1].Close()
	r := newRecorder()
	tr, err := New(Config{Group: "test", Addresses: addresses, Listener: listeners[0], SharedBytes: testShared})
	if err != nil {
		t.Fatal(err)
	}
	m := &member{tr, r}
	if err := tr.Start(r); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	child := exec.Command(os.Args[0], "-test.run=^TestSharedMemoryOfKilledProcesses$")
	child.Env = append(os.Environ(), killedAddresses+"="+strings.Join(addresses, ","))
	child.ExtraFiles = []*os.File{theirs} // Descriptor 3.
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	some := rand.IntN(5000)
	eventually(t, "frames", func() bool { return len(r.received(1)) > some })
	shared = m.Stats().Shared == 1
	_ = child.Process.Kill()
	_ = child.Wait()
	eventually(t, "down", func() bool { return strings.HasSuffix(r.story(1), "down") })
	for i, frame := range r.received(1) {
		n, sum := binary.BigEndian.Uint32(frame), binary.BigEndian.Uint32(frame[4:])
		if n != uint32(i) || sum != crc32.ChecksumIEEE(frame[8:]) {
			t.Fatalf("frame %d is number %d, or damaged", i, n)
		}
	}
	return shared
}

// sendUntilKilled is the process that is killed.
func sendUntilKilled(t *testing.T, addresses []string) {
	listener, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		t.Fatal(err)
	}
	tr, err := New(Config{Group: "test", Rank: 1, Addresses: addresses, Listener: listener, SharedBytes: testShared})
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Start(newRecorder()); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, 4096)
	full := time.Tick(100 * time.Microsecond)
	for n := uint32(0); ; {
		for i := range body {
			body[i] = byte(rand.Uint32())
		}
		part := body[:rand.IntN(len(body))]
		frame := binary.BigEndian.AppendUint32(nil, n)
		frame = append(binary.BigEndian.AppendUint32(frame, crc32.ChecksumIEEE(part)), part...)
		if tr.Send(0, frame) == nil {
			n++
		} else {
			<-full
		}
	}
}

// oneSide returns one side of shared memory with short rings, without a connection, and the other side
// of both rings.
func oneSide(size int) (s *shared, toIt *producer, fromIt *consumer) {
	s = &shared{lock: new(pollLock), space: make(chan struct{}, 1)}
	toIt, in, _ := newRing(size, func() {}, func() {})
	out, fromIt, _ := newRing(size, func() {}, func() {})
	s.in, s.out = *in, *out
	return s, toIt, fromIt
}

// What a connection has received before it was closed here is not passed on afterwards.
func TestClosedSharedMemoryIsNotRead(t *testing.T) {
	s, peer, _ := oneSide(256)
	if _, err := peer.put([]byte("bytes")); err != nil {
		t.Fatal(err)
	}
	peer.publish()
	s.close()
	if n, err := s.Read(make([]byte, 10)); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// A reader that has much to read wakes the writer as soon as half of its ring is free, and not before.
func TestReaderWakesTheWriter(t *testing.T) {
	const size = 256
	s, _, peer := oneSide(size)
	if n, err := s.out.put(make([]byte, size)); n != size || err != nil {
		t.Fatal(n, err)
	}
	s.out.publish()
	s.waitsFor.Store(size / 2)
	s.lock.polling = true // it does not wait
	for taken := 0; taken < size; taken += size / 4 {
		_, _ = s.Read(make([]byte, 1))
		if woken := len(s.space) > 0; woken != (taken >= size/2) {
			t.Errorf("the writer is woken when %d of %d bytes are taken: %t", taken, size, woken)
		}
		if n, err := peer.get(make([]byte, size/4)); n != size/4 || err != nil {
			t.Fatal(n, err)
		}
	}
}

// Without memory to share, frames go on by the socket.
func TestNoMemoryToOffer(t *testing.T) {
	m := startGroup(t, 2, Config{SharedBytes: testShared, shareInside: true})
	connect(t, m[0], m[1])
	number := memfdCreate
	defer func() { memfdCreate = number }()
	memfdCreate = 1 << 20 // no such system call
	p := m[0].peer(1)
	p.mu.Lock()
	c := p.conn
	p.mu.Unlock()
	c.offer()
	if m[0].mapped.Load() != 0 {
		t.Errorf("%d bytes are counted", m[0].mapped.Load())
	}
	connect(t, m[0], m[1])
}

// Memory that cannot be had is not counted, and what the system refuses is an error.
func TestMemoryThatCannotBeHad(t *testing.T) {
	m := startGroup(t, 2, Config{SharedBytes: testShared})[0]
	at := location{pid: uint32(os.Getppid()), fd: 1 << 20, ringSize: minRing}
	if got, err := m.open(at); err == nil || got != nil || m.mapped.Load() != 0 {
		t.Errorf("%v: %v, %d bytes are counted", got, err, m.mapped.Load())
	}
	if _, err := fcntl(-1, addSeals, sealed); err == nil {
		t.Error("a descriptor that is none is sealed")
	}
}
