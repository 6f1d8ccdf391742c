package experiments

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport/tcp"
)

// drillLimit is how long a job may take.
const drillLimit = 3 * time.Minute

// muster does a drill with a job of its own, and returns what each process tells:
// nil from the victim.
func (d *drill) muster(ctx context.Context, command []string) ([]*drillReport, error) {
	ctx, cancel := context.WithTimeout(ctx, drillLimit)
	defer cancel()
	listeners, addresses := make([]*net.TCPListener, d.Members), make([]string, d.Members)
	for r := range listeners {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return nil, errors.Join(err, closeAll(listeners[:r]))
		}
		listeners[r], addresses[r] = l, l.Addr().String()
	}
	part := d.inGoroutine
	if len(command) > 0 {
		part = func(ctx context.Context, rank int, l *net.TCPListener, addresses []string) (*drillReport, error) {
			return d.inProcess(ctx, command, rank, l, addresses)
		}
	}
	reports, errs := make([]*drillReport, d.Members), make([]error, d.Members)
	var all sync.WaitGroup
	for r, l := range listeners {
		all.Go(func() {
			if reports[r], errs[r] = part(ctx, r, l, addresses); r == d.Victim {
				reports[r], errs[r] = nil, nil
			} else if errs[r] != nil {
				errs[r] = fmt.Errorf("rank %d: %w", r, errs[r])
				cancel()
			}
		})
	}
	all.Wait()
	return reports, errors.Join(errs...)
}

func closeAll(listeners []*net.TCPListener) error {
	var errs []error
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// inGoroutine is a process of the job within this one.
func (d *drill) inGoroutine(ctx context.Context, rank int, l *net.TCPListener, addresses []string) (*drillReport, error) {
	t, err := tcp.New(tcp.Config{Group: "drill", Rank: protocol.Rank(rank), Addresses: addresses, Listener: l, Open: true})
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	w, err := pleach.NewWorld(ctx, pleach.Config{Group: "drill", Addresses: addresses, Rank: rank, Transport: t})
	if err != nil {
		return nil, err
	}
	report, err := d.run(ctx, w, func() { _ = w.Close() })
	return report, errors.Join(err, w.Close())
}

// inProcess is a process of its own. It ends with its standard input, at the
// latest.
func (d *drill) inProcess(ctx context.Context, command []string, rank int, l *net.TCPListener, addresses []string) (*drillReport, error) {
	socket, err := l.File()
	if err := errors.Join(err, l.Close()); err != nil {
		return nil, err
	}
	defer socket.Close()
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	plan, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Args = append(slices.Clone(command), string(plan))
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PLEACH_") })
	cmd.Env = append(cmd.Env, "PLEACH_GROUP=drill", "PLEACH_LISTEN_FD=3", "PLEACH_RANK="+strconv.Itoa(rank),
		"PLEACH_SIZE="+strconv.Itoa(d.Members), "PLEACH_ADDRESSES="+strings.Join(addresses, ","))
	cmd.ExtraFiles = []*os.File{socket} // number 3
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if _, err := cmd.StdinPipe(); err != nil { // it ends with this process
		return nil, err
	}
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(complaint.Bytes()))
	}
	report := new(drillReport)
	return report, json.Unmarshal(out.Bytes(), report)
}

// ServeTask is a process of a job that [Overheads.Measure] starts: plan is its last
// argument. It tells what it has measured on its standard output. The victim kills
// itself, as in the thesis: "the according process is stopped by raising a SIGKILL
// signal" (§5.2.1).
func ServeTask(ctx context.Context, plan string, input io.Reader, output io.Writer) error {
	var d drill
	if err := json.Unmarshal([]byte(plan), &d); err != nil {
		return fmt.Errorf("experiments: no plan of a task: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, drillLimit)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, input) // nothing comes but its end
		cancel()
	}()
	w, err := pleach.NewWorld(ctx, pleach.Config{})
	if err != nil {
		return err
	}
	report, err := d.run(ctx, w, killMyself)
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	return json.NewEncoder(output).Encode(report)
}

// killMyself does not return.
func killMyself() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {}
}
