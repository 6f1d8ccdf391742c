package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/agent/client"
	"github.com/pleach-go/pleach/agent/transfer"
)

// cpCommand copies files to all members through an agent.
type cpCommand struct {
	agentFlags
	rate  int64
	fleet bool
	waves waveFlags
}

func newCp() *cobra.Command {
	var c cpCommand
	cmd := &cobra.Command{
		Use:   "cp FILE... :DIR/",
		Short: "Copy files to all members of a group or of a fleet, through the agent of this host",
		Long: `Copy files to a directory of every member, this one included. Chunks go along the group's
tree, so that the network of this host carries a file a few times, and not once for each
member. Each chunk is verified by its SHA-256, and a file gets its name when it is complete
and on the disk.

A member takes files only in the directories of its setting file-dirs (see pleach agent), and
directories below; a relative DIR is below the first of them. Members that die meanwhile are
not waited for, and members that join meanwhile get the files, too.

A copy uses all of the bandwidth of the group, and other broadcasts share it. --rate
leaves room for them.

A copy that was interrupted, at either end, continues where it ended when it is started
again: only the chunks travel that members lack. A member that has the file already gets
nothing. The exit code is 1 if a member has not got a file.

With --fleet, the files go to the members of all zones. A file crosses each long link once,
to a gateway that copies it in its zone.

With --waves, a file of at most 700 KB is released wave by wave, as pleach send --waves does with a
message. If the rollout fails, the members that have it get back what they had before. The handler of
--gate has its path in PLEACH_FILE.`,
		Example: `  pleach cp app.tar.gz :releases/
  pleach cp a.img b.img :/srv/images/ --rate 50000000
  pleach cp model.bin : --fleet
  pleach cp app.conf :etc/ --waves 1,10%,100% --gate config-ok --hold 30s
  pleach cp model.bin : --json | jq '.members[] | select(.outcome == "failed")'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := c.waves.check(cmd); err != nil {
				return err
			}
			if c.waves.waves != "" && len(args) > 2 {
				return errors.New("--waves is for one file: write pleach cp FILE :DIR/ --waves 1,10%,100%")
			}
			if c.rate < 0 {
				return fmt.Errorf("--rate %d: write a number of bytes in a second, or 0 for no limit", c.rate)
			}
			if len(args) < 2 || !strings.HasPrefix(args[len(args)-1], ":") {
				return errors.New("write files and a directory with a colon before it, as in pleach cp app.tar.gz :releases/")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
	}
	c.addFlags(cmd)
	cmd.Flags().BoolVar(&c.fleet, "fleet", false, "to the members of all zones")
	cmd.Flags().Int64Var(&c.rate, "rate", 0,
		"how many `bytes` of a file are sent in a second, at most (default: no limit)")
	c.waves.addFlags(cmd)
	for _, other := range []string{"fleet", "rate"} {
		cmd.MarkFlagsMutuallyExclusive("waves", other)
	}
	return cmd
}

func (c *cpCommand) run(cmd *cobra.Command, args []string) error {
	agent, err := c.started(cmd, true, 0)
	if err != nil {
		return err
	}
	names, dir := args[:len(args)-1], path.Clean(args[len(args)-1][1:])
	if c.waves.waves != "" {
		return c.waves.startFile(cmd, &c.agentFlags, agent, names[0], dir)
	}
	failed := 0
	for i, name := range names {
		result, sent, err := c.copy(cmd, agent, name, dir)
		if cmd.Context().Err() != nil && err != nil {
			return cli.Interruption(
				fmt.Sprintf("interrupted after %d of %s, and %d of %d bytes of %s: members keep what they have, and the same command continues from there",
					i, cli.Count(len(names), "file"), sent.Sent, sent.Total, name))
		}
		if err != nil {
			return cli.Failure(fmt.Errorf("%s: %w", name, err))
		}
		if err := c.print(cmd.OutOrStdout(), &result, copyText(name, &result)); err != nil {
			return err
		}
		if result.Error() != nil {
			failed++
		}
	}
	if failed > 0 {
		return cli.Failure(fmt.Errorf("%d of %d files have not reached every member", failed, len(names)))
	}
	return nil
}

// copy copies one file.
func (c *cpCommand) copy(cmd *cobra.Command, agent *client.Client,
	name, dir string,
) (r transfer.Result, sent transfer.Progress, err error) {
	file, err := os.Open(name)
	if err != nil {
		return r, sent, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return r, sent, err
	}
	if !info.Mode().IsRegular() {
		return r, sent, errors.New("it is not a regular file")
	}
	bar := newCopyProgress(cmd.ErrOrStderr(), info.Name(), info.Size())
	defer bar.stop()
	upload := api.Upload{
		Dir: dir, Name: info.Name(), Mode: info.Mode(), Rate: c.rate, Fleet: c.fleet,
		Content: io.TeeReader(file, bar),
	}
	r, err = agent.Copy(cmd.Context(), upload, bar.update)
	return r, bar.last, err
}

// copyText says in a line or two what has become of a file.
func copyText(name string, r *transfer.Result) string {
	have := r.Count(transfer.Done) + r.Count(transfer.Present)
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s in %s have it", cli.Printable(name), cli.Count(have, "member"), cli.Printable(r.Dir))
	if n := r.Count(transfer.Present); n > 0 {
		fmt.Fprintf(&b, ", %d had it before", n)
	}
	if n := r.Count(transfer.Gone); n > 0 {
		fmt.Fprintf(&b, ", %d left the group", n)
	}
	for _, m := range r.Members {
		if m.Outcome == transfer.Failed {
			fmt.Fprintf(&b, "\n  not rank %d (%s): %s", m.Rank, zoned(m.Zone, m.ID), cli.Printable(m.Error))
		}
	}
	for _, z := range r.FailedZones {
		fmt.Fprintf(&b, "\n  not complete in zone %s: %s", cli.Printable(z.Zone), cli.Printable(z.Error))
	}
	return b.String()
}
