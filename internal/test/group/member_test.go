package group_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/bootstrap"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/transport/fault"
)

// A member as a process of its own: it broadcasts, checks what it gets, and tells
// the test on its output. Lines are "sent NUMBER", "have ROOT NUMBER MICROSECONDS",
// and in the end "over LOST DUPLICATED KIB".

// memberProgram is the variable that holds a member's config, as JSON.
const memberProgram = "PLEACH_TEST_MEMBER"

// memberConfig says what a member does. Who it is comes from a launcher's
// variables, as for any program.
type memberConfig struct {
	Seed      uint64
	Messages  int           // how many to broadcast
	Bytes     int           // how long each is; 0: 64 B to 256 KiB at random
	Pace      time.Duration // one each; 0: up to 200 ms at random
	KeepBytes int           // of stream.Config
	Faults    string        // what befalls its frames, see fault.Parse
	Resets    time.Duration // how often one of its connections is reset, about; 0: never
	// Static: no member is ever removed, so that one that was cut off gets everything
	// when it is back.
	Static bool
	// Resident, if not nil, is what the member does instead.
	Resident *residentConfig
}

func runMember(config string) error {
	var c memberConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	if c.Resident != nil {
		return c.Resident.run()
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	group, err := c.join(ctx)
	if err != nil {
		return err
	}
	go func() { // the test ends it by closing its input
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	go c.broadcast(ctx, group)
	lost, duplicated, err := takeAll(ctx, group)
	if err == nil && ctx.Err() == nil {
		err = fmt.Errorf("no more messages: %w", group.Err())
	}
	if err != nil {
		return err
	}
	fmt.Println("over", lost, duplicated, peakKiB())
	return group.Abort()
}

// join joins as any program does, unless faults are asked for.
func (c *memberConfig) join(ctx context.Context) (*pleach.Group, error) {
	if c.Faults == "" && c.Resets == 0 {
		return pleach.Start(ctx, pleach.Config{
			Static:    c.Static,
			Detection: pleach.Detection{SuspicionTimeout: c.suspicionTimeout()}, Limits: pleach.Limits{KeepBytes: c.KeepBytes},
		})
	}
	place, err := bootstrap.Detect(os.Getenv)
	if err != nil {
		return nil, err
	}
	script, err := fault.Parse(c.Faults)
	if err != nil {
		return nil, err
	}
	listener, err := place.Listener()
	if err != nil {
		return nil, err
	}
	resetting := &resettingListener{Listener: listener}
	if c.Resets > 0 {
		go resetting.reset(ctx, rand.New(rand.NewPCG(c.Seed, uint64(place.Rank))), c.Resets)
	}
	inner, err := tcp.New(tcp.Config{
		Group: place.Group, Rank: place.Rank, Addresses: place.Addresses, Listener: resetting,
		Open: true,
	})
	if err != nil {
		return nil, err
	}
	bad := fault.New(c.Seed, fault.Config{})
	go func() { _ = bad.Run(ctx, script) }()
	return pleach.Start(ctx, pleach.Config{
		Group: place.Group, Addresses: place.Addresses, Rank: int(place.Rank),
		Network:   pleach.Network{Transport: bad.Wrap(place.Rank, inner)},
		Detection: pleach.Detection{SuspicionTimeout: c.suspicionTimeout()},
		Limits:    pleach.Limits{KeepBytes: c.KeepBytes},
	})
}

// suspicionTimeout lets a member be stopped for as long as the test likes, and get
// everything when it goes on.
func (c *memberConfig) suspicionTimeout() time.Duration {
	if c.Static {
		return 0
	}
	return -1
}

// resettingListener resets connections it has accepted, under the transport's
// hands: both sides see what a failing switch or firewall does to them.
type resettingListener struct {
	net.Listener
	mu    sync.Mutex
	conns []*net.TCPConn
}

func (l *resettingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if c, ok := c.(*net.TCPConn); ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.conns = append(l.conns, c)
	}
	return c, err
}

// reset resets connections, about one in each interval, until ctx ends.
func (l *resettingListener) reset(ctx context.Context, rng *rand.Rand, interval time.Duration) {
	for ctx.Err() == nil {
		time.Sleep(time.Duration(rng.Int64N(2 * int64(interval))))
		l.mu.Lock()
		if len(l.conns) > 0 {
			i := rng.IntN(len(l.conns))
			_ = l.conns[i].SetLinger(0)
			_ = l.conns[i].Close()
			l.conns = append(l.conns[:i], l.conns[i+1:]...)
		}
		l.mu.Unlock()
	}
}

func (c *memberConfig) broadcast(ctx context.Context, group *pleach.Group) {
	rng := rand.New(rand.NewPCG(c.Seed, uint64(group.Rank())))
	next := time.Now()
	for i := range c.Messages {
		size := cmp.Or(c.Bytes, 64<<rng.IntN(13))
		if err := group.Broadcast(ctx, numbered(group.Rank(), i, size)); err != nil {
			if ctx.Err() == nil {
				fmt.Println("error", err)
			}
			return
		}
		fmt.Println("sent", i+1)
		next = next.Add(cmp.Or(c.Pace, time.Duration(rng.IntN(200))*time.Millisecond))
		time.Sleep(time.Until(next))
	}
}

// numbered is a message that says whose and which it is and when it was sent, and
// carries a checksum.
func numbered(root, number, size int) []byte {
	b := make([]byte, size)
	binary.BigEndian.PutUint32(b, uint32(root))
	binary.BigEndian.PutUint32(b[4:], uint32(number))
	binary.BigEndian.PutUint64(b[16:], uint64(time.Now().UnixNano()))
	for i := 24; i < len(b); i++ {
		b[i] = byte(i + number)
	}
	binary.BigEndian.PutUint64(b[8:], checksum(b))
	return b
}

func checksum(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b[:8])
	h.Write(b[16:])
	return h.Sum64()
}

// takeAll takes messages until ctx ends, and counts those that did not come or
// came again.
func takeAll(ctx context.Context, group *pleach.Group) (lost, duplicated uint64, err error) {
	next := make([]int, group.Size())
	for m, err := range group.Messages(ctx) {
		if e, ok := errors.AsType[*pleach.LostError](err); ok {
			lost += e.Count
			continue
		}
		root, number := int(binary.BigEndian.Uint32(m.Data)), int(binary.BigEndian.Uint32(m.Data[4:]))
		if root != m.From || binary.BigEndian.Uint64(m.Data[8:]) != checksum(m.Data) {
			return lost, duplicated, fmt.Errorf("message %d of root %d came from %d, or was changed", number, root, m.From)
		}
		if number < next[root] {
			duplicated++
			continue
		}
		lost += uint64(number - next[root])
		next[root] = number + 1
		took := time.Now().UnixNano() - int64(binary.BigEndian.Uint64(m.Data[16:]))
		fmt.Println("have", root, next[root], took/1000)
	}
	return lost, duplicated, nil
}

// peakKiB is the most memory this process has had, or 0 where the system does not
// say.
func peakKiB() (kib int) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if line, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			_, _ = fmt.Sscan(line, &kib)
		}
	}
	return kib
}
