package calibrate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/pleach-go/pleach/agent/launch"
)

// MeasureHere measures between two processes of this host. It starts this program
// once more, with these arguments: the process is to call [ServeEcho].
func MeasureHere(ctx context.Context, args []string) (n Network, err error) {
	output, write, err := os.Pipe()
	if err != nil {
		return n, err
	}
	defer output.Close()
	p, err := launch.Start(launch.Command{Args: args, Stdout: write, Stderr: os.Stderr, Input: true})
	write.Close()
	if err != nil {
		return n, err
	}
	defer context.AfterFunc(ctx, p.Kill)()
	defer func() {
		p.CloseInput() // which ends it
		err = errors.Join(err, p.Wait(ctx))
	}()
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return n, fmt.Errorf("the other process does not listen: %w", err)
	}
	return Measure(ctx, strings.TrimSpace(line))
}

// ServeEcho prints the address that it listens at, and answers until the input or the
// context ends.
func ServeEcho(ctx context.Context, in io.Reader, out io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in) // nothing comes but its end
		cancel()
	}()
	if _, err := fmt.Fprintln(out, l.Addr()); err != nil {
		return err
	}
	return Echo(ctx, l)
}
