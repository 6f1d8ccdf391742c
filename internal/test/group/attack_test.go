package group_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Attackers as a process of their own, so that what they cost a member can be
// told from what they cost themselves. In the end they tell "welcomed NUMBER":
// how often one was let in.

// attackProgram is the variable that holds an attack, as JSON.
const attackProgram = "PLEACH_TEST_ATTACK"

// attack is what attackers do to a member of a group of attackedSize.
type attack struct {
	Kind     string // one of attacks
	Target   string
	Group    string
	Size     uint32 // of a fixed group
	Papers   testutil.Credentials
	Parallel int
	Attempts int           // in all; 0: as many as they can
	Lasting  time.Duration // 0: until all attempts are made
}

// over reports whether attempt i is one too many.
func (a *attack) over(i int64, began time.Time) bool {
	return a.Attempts > 0 && i > int64(a.Attempts) || a.Lasting > 0 && time.Since(began) > a.Lasting
}

const attackedSize = 4

// attacks are what is written to a member, by kind.
var attacks = map[string]func(*attack, net.Conn) (welcomed bool, err error){
	"garbage": func(_ *attack, c net.Conn) (bool, error) {
		return false, hurl(c, bytes.Repeat([]byte{0xa5}, 10_000))
	},
	"huge frame": func(_ *attack, c net.Conn) (bool, error) {
		return false, hurl(c, []byte{0xff, 0xff, 0xff, 0xff, 1, 2, 3})
	},
	"huge record": func(_ *attack, c net.Conn) (bool, error) { // of TLS, with a handshake message of 16 MiB
		return false, hurl(c, []byte{22, 3, 1, 0xff, 0xff, 1, 0xff, 0xff, 0xff})
	},
	"slow": func(_ *attack, c net.Conn) (bool, error) {
		for _, b := range []byte{22, 3, 1, 1, 0, 1, 0, 0, 252, 3, 3} { // as a ClientHello begins
			if _, err := c.Write([]byte{b}); err != nil {
				return false, nil // closed already
			}
			time.Sleep(200 * time.Millisecond)
		}
		return false, drain(c)
	},
	"plain":       (*attack).inject,
	"certificate": (*attack).injectTLS,
}

func runAttack(config string) error {
	var a attack
	if err := json.Unmarshal([]byte(config), &a); err != nil {
		return err
	}
	began := time.Now()
	var welcomed, made atomic.Int64
	var failed error
	var once sync.Once
	var wg sync.WaitGroup
	for range a.Parallel {
		wg.Go(func() {
			for !a.over(made.Add(1), began) {
				in, err := a.attempt()
				if in {
					welcomed.Add(1)
				}
				if err != nil {
					once.Do(func() { failed = err })
				}
			}
		})
	}
	wg.Wait()
	fmt.Println("welcomed", welcomed.Load())
	return failed
}

func (a *attack) attempt() (welcomed bool, err error) {
	c, err := net.Dial("tcp", a.Target)
	if err != nil {
		return false, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return attacks[a.Kind](a, c)
}

// hurl writes, and waits to be thrown out.
func hurl(c net.Conn, b []byte) error {
	_, _ = c.Write(b) // may be thrown out in the middle
	_ = c.(*net.TCPConn).CloseWrite()
	return drain(c)
}

// drain reads until the member closes. Only its patience is an error.
func drain(c net.Conn) error {
	var timeout net.Error
	if _, err := io.Copy(io.Discard, c); errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("still connected: %w", err)
	}
	return nil
}

// injectTLS is inject within TLS, with the papers there are.
func (a *attack) injectTLS(c net.Conn) (bool, error) {
	config, err := a.Papers.TLS()
	if err != nil {
		return false, err
	}
	config.InsecureSkipVerify = true // an attacker checks no certificate
	return a.inject(tls.Client(c, config))
}

// inject presents itself as rank 1, newer than the real one, and sends a message
// as that.
func (a *attack) inject(c net.Conn) (bool, error) {
	hello := wire.Hello{Group: a.Group, Size: a.Size, From: 1, Incarnation: math.MaxInt64, Attempt: 1}
	out := wire.AppendFrame(nil, wire.AppendHello(nil, &hello))
	member, err := stream.New(stream.Config{Rank: 1, Size: attackedSize, Incarnation: 1})
	if err != nil {
		return false, err
	}
	if err := member.Write([]byte("injected"), 0); err != nil {
		return false, err
	}
	for _, frame, _, ok := member.Next(1); ok; _, frame, _, ok = member.Next(1) {
		out = wire.AppendFrame(out, frame)
	}
	if _, err := c.Write(out); err != nil {
		return false, nil // thrown out
	}
	body, err := wire.NewReader(c, wire.MaxHelloFrame).Next()
	if err != nil {
		return false, nil
	}
	answer, err := wire.DecodeHello(body)
	if err != nil || answer.Status != wire.Accepted {
		return false, nil
	}
	time.Sleep(100 * time.Millisecond) // so that it is read before the end
	return true, nil
}
