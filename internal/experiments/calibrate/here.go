package calibrate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pleach-go/pleach/internal/launch"
)

// MeasureHere measures between two processes of this host. It starts this program
// once more, with these arguments: the process is to print the address that it
// listens at, to call [Echo], and to end with its standard input.
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
