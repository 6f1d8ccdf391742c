package bootstrap

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Many launchers tell a process its rank and not where the others are. One address suffices
// then: rank 0 listens there, every process tells it the port that it has got, and receives the
// addresses of all. It is what torchrun and Gloo call a rendezvous.
//
// With a secret, both sides sign what they say. That keeps an outsider from sending processes
// elsewhere; connections between processes prove the secret themselves. Rank 0 speaks first, and
// a registration signs its challenge, which is another one for each connection, and the
// address from which it comes: so what somebody has read or passed on does not count from
// another address.

// Limits of a rendezvous.
const (
	maxRegistration = 4 << 10
	maxChallenge    = 256
	retryTime       = 100 * time.Millisecond
	confirmTime     = 2 * time.Second // for processes to confirm a complete list
)

// registerTime is how long a connection may take to say who it is. Tests change it.
var registerTime = 10 * time.Second

// challenge is what rank 0 tells each process that connects, as a line of JSON.
type challenge struct {
	Challenge string `json:"challenge"`
}

// registration is what a process tells rank 0, as a line of JSON.
type registration struct {
	Group string `json:"group"`
	Size  int    `json:"size"`
	Rank  int    `json:"rank"`
	Host  string `json:"host"` // IP address from which the process connects
	Port  uint16 `json:"port"`
	Nonce string `json:"nonce"`
	MAC   []byte `json:"mac,omitempty"`
}

// directory is what it answers.
type directory struct {
	Addresses []string `json:"addresses,omitempty"`
	Error     string   `json:"error,omitempty"`
	MAC       []byte   `json:"mac,omitempty"`
}

// sign returns a message authentication code of a registration, and none without a secret.
func (r *registration) sign(secret []byte, challenge string) []byte {
	return signed(secret, fmt.Sprintf("register\n%q %q %d %d %q %d %s", challenge, r.Group, r.Size, r.Rank, r.Host, r.Port,
		r.Nonce))
}

// sign returns that of an answer to a registration.
func (d *directory) sign(secret []byte, nonce string) []byte {
	return signed(secret, fmt.Sprintf("directory\n%s %q %q", nonce, d.Addresses, d.Error))
}

func signed(secret []byte, text string) []byte {
	if len(secret) == 0 {
		return nil
	}
	h := hmac.New(sha256.New, secret)
	_, _ = io.WriteString(h, text)
	return h.Sum(nil)
}

// Meet returns the assignment with the addresses of all processes. Without a Rendezvous they
// are known, and there is nothing to do. Otherwise it opens this process's socket at a free
// port and waits for all others, as long as the context lasts.
func (a Assignment) Meet(ctx context.Context) (Assignment, error) {
	if a.Rendezvous == "" || a.Addresses != nil {
		return a, a.Check()
	}
	if a.Respawned {
		return a, fmt.Errorf(
			"bootstrap: the rendezvous of rank %d's job is over: set PLEACH_ADDRESSES in a process that replaces one", a.Rank)
	}
	host, _, err := net.SplitHostPort(a.Rendezvous)
	if err != nil {
		return a, &VariableError{Name: "PLEACH_RENDEZVOUS", Value: a.Rendezvous, Problem: "write host:port", Err: err}
	}
	a.listener, err = net.Listen("tcp", net.JoinHostPort(listenHost(host), "0"))
	if err != nil {
		return a, fmt.Errorf("bootstrap: rank %d: %w", a.Rank, err)
	}
	a.Addresses, err = a.meet(ctx)
	if err == nil {
		err = a.Check()
	}
	if err != nil {
		return a, errors.Join(err, a.listener.Close())
	}
	return a, nil
}

// listenHost is where processes of a job listen: on this host alone if the rendezvous is.
func listenHost(rendezvous string) string {
	if ip, err := netip.ParseAddr(rendezvous); err == nil && ip.IsLoopback() {
		return rendezvous
	}
	return ""
}

// meet registers this process. Rank 0 keeps the list.
func (a *Assignment) meet(ctx context.Context) ([]string, error) {
	if a.Rank != 0 {
		return a.register(ctx)
	}
	host, port, _ := net.SplitHostPort(a.Rendezvous) // checked
	l, err := net.Listen("tcp", net.JoinHostPort(listenHost(host), port))
	if err != nil {
		return nil, fmt.Errorf("bootstrap: rank 0 is the rendezvous at %s: %w", a.Rendezvous, err)
	}
	during, end := context.WithCancel(ctx)
	defer end()
	if deadline, ok := ctx.Deadline(); ok { // processes that wait as long as rank 0 still receive its answer
		var stop context.CancelFunc
		during, stop = context.WithTimeout(during, time.Until(deadline)*9/10)
		defer stop()
	}
	var serving sync.WaitGroup
	serving.Go(func() { newMeeting(a, l).serve(during) })
	addresses, err := a.register(ctx)
	if err != nil {
		end() // without rank 0 there is nothing to wait for
	}
	serving.Wait()
	return addresses, err
}

// register tells rank 0 the own port until it answers.
func (a *Assignment) register(ctx context.Context) ([]string, error) {
	port := netip.MustParseAddrPort(a.listener.Addr().String()).Port()
	r := registration{Group: a.Group, Size: int(a.Size), Rank: int(a.Rank), Port: port, Nonce: rand.Text()}
	for {
		d, err := a.ask(ctx, &r)
		switch {
		case err == nil && d.Error != "":
			return nil, fmt.Errorf("bootstrap: rank %d at the rendezvous %s: %s", a.Rank, a.Rendezvous, d.Error)
		case err == nil:
			return d.Addresses, nil
		}
		select {
		case <-time.After(retryTime): // rank 0 may start later
		case <-ctx.Done():
			return nil, fmt.Errorf("bootstrap: rank %d at the rendezvous %s: %w", a.Rank, a.Rendezvous,
				errors.Join(context.Cause(ctx), err))
		}
	}
}

// ask signs and sends a registration, waits for the answer, and confirms it.
func (a *Assignment) ask(ctx context.Context, r *registration) (d directory, err error) {
	var dialer net.Dialer
	if own := a.listener.Addr().(*net.TCPAddr).IP; !own.IsUnspecified() { // rank 0 takes it for the own address
		dialer.LocalAddr = &net.TCPAddr{IP: own}
	}
	c, err := dialer.DialContext(ctx, "tcp", a.Rendezvous)
	if err != nil {
		return d, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	in := bufio.NewReader(io.LimitReader(c, maxAddressFile))
	line, err := readLine(in, maxChallenge)
	if err != nil {
		return d, err
	}
	var asked challenge
	if err := json.Unmarshal(line, &asked); err != nil {
		return d, err
	}
	r.Host = hostOf(c.LocalAddr()).String()
	r.MAC = r.sign(a.Secret, asked.Challenge)
	if err := json.NewEncoder(c).Encode(r); err != nil {
		return d, err
	}
	if err := json.NewDecoder(in).Decode(&d); err != nil {
		return d, err
	}
	if len(a.Secret) > 0 && !hmac.Equal(d.MAC, d.sign(a.Secret, r.Nonce)) {
		return d, errors.New("the answer does not prove PLEACH_SECRET")
	}
	_, _ = c.Write([]byte{'\n'})
	return d, nil
}

// readRegistration sends a challenge, reads the line that answers it, and checks its signature.
func readRegistration(c net.Conn, secret []byte) (r registration, err error) {
	_ = c.SetDeadline(time.Now().Add(registerTime))
	asked := challenge{rand.Text()}
	if err := json.NewEncoder(c).Encode(&asked); err != nil {
		return r, err
	}
	line, err := readLine(bufio.NewReader(io.LimitReader(c, maxRegistration)), maxRegistration)
	if err != nil {
		return r, err
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return r, err
	}
	if len(secret) > 0 && !hmac.Equal(r.MAC, r.sign(secret, asked.Challenge)) {
		return r, errors.New("the registration does not prove PLEACH_SECRET")
	}
	return r, c.SetDeadline(time.Time{})
}

// readLine reads a line that is not longer than a limit.
func readLine(in *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for len(line) < limit {
		b, err := in.ReadByte()
		if err != nil {
			return nil, err
		}
		line = append(line, b)
		if b == '\n' {
			return line, nil
		}
	}
	return nil, fmt.Errorf("a line is longer than %d bytes", limit)
}
