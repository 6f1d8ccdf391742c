package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/internal/driver/admission"
)

func newSecret() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secret",
		Short: "Replace the secret of a running group",
		Long: `Replace the secret of a group while it runs. A secret file may have up to four secrets, one
in each line. A process proves the first to others, and accepts all. Members read the file
again within a second after a change, so no process has to be restarted.

The file is the same on all hosts. Do each step on one host, copy the file to the others,
and run pleach secret check before the next step: a member that lacks the new secret would
refuse those that prove it.

1. pleach secret rotate --step add FILE: all members accept the new secret.
2. pleach secret rotate --step use FILE: all members prove the new secret.
3. pleach secret rotate --step drop FILE: no member accepts the old one any more.

Processes that start during a step use the file that is there, and are accepted. Open
connections continue. A process that only knows the old secret and is a member stays one
until its connections end: evict it (pleach evict).`,
		Example: `  pleach secret rotate --step add /etc/pleach/secret
  pleach secret check db1:7000 --secret-file /etc/pleach/secret`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newSecretRotate(), newSecretCheck())
	return cmd
}

// secretSteps are the steps of a rotation.
var secretSteps = map[string]func([][]byte) ([][]byte, error){
	"add": func(secrets [][]byte) ([][]byte, error) {
		if len(secrets) > 1 {
			return nil, errors.New("it has two secrets already: finish that rotation first (--step use, --step drop)")
		}
		return append(secrets, []byte(rand.Text()+rand.Text())), nil
	},
	"use": func(secrets [][]byte) ([][]byte, error) {
		if len(secrets) != 2 {
			return nil, fmt.Errorf("it has %d secrets, and the step is for the two of a rotation: --step add comes first",
				len(secrets))
		}
		return [][]byte{secrets[1], secrets[0]}, nil
	},
	"drop": func(secrets [][]byte) ([][]byte, error) { return secrets[:1], nil },
}

func newSecretRotate() *cobra.Command {
	var step string
	cmd := &cobra.Command{
		Use:     "rotate FILE",
		Short:   "Do one step of a rotation in a secret file",
		Long:    "Do one step of a rotation in a secret file: see pleach secret --help.",
		Example: "  pleach secret rotate --step add /etc/pleach/secret",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			do, ok := secretSteps[step]
			if !ok {
				return fmt.Errorf("--step %q: write add, use or drop", step)
			}
			if err := rotateSecret(args[0], do); err != nil {
				return cli.Failure(err)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(),
				"%s: step %s done; copy the file to all hosts, then: pleach secret check --secret-file %s ADDRESS\n", args[0], step,
				args[0])
			return cli.Failure(err)
		},
	}
	cmd.Flags().StringVar(&step, "step", "", "`add`, use or drop")
	_ = cmd.MarkFlagRequired("step")
	return cmd
}

// rotateSecret replaces a secret file with one that its readers see as a whole.
func rotateSecret(file string, step func([][]byte) ([][]byte, error)) error {
	secrets, err := admission.ReadSecrets(file)
	if err != nil {
		return err
	}
	secrets, err = step(secrets)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	return replaceFile(file, append(bytes.Join(secrets, []byte("\n")), '\n'), info)
}

// replaceFile writes a new file in the place of another one, for the same users.
func replaceFile(file string, data []byte, like fs.FileInfo) (err error) {
	f, err := os.CreateTemp(filepath.Dir(file), ".pleach-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	if err = errors.Join(err, cli.SameOwner(f, like), f.Chmod(like.Mode().Perm()), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

// secretCheck asks all members whether they accept the secrets of a file.
type secretCheck struct{ groupFlags }

func newSecretCheck() *cobra.Command {
	var s secretCheck
	cmd := &cobra.Command{
		Use:   "check [ADDRESS]",
		Short: "Ask all members which secrets of a file they accept",
		Long: `Ask all members of a group which secrets of the file they accept, and fail if one does not
accept all. Run it after each step of a rotation, before the next one. The address is that
of any member. Without an address, it is the agent of this host (--config).`,
		Example: "  pleach secret check db1:7000 --secret-file /etc/pleach/secret",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return errors.New("write the address of a member, as in pleach secret check 127.0.0.1:7000")
			}
			return errors.Join(mapped(args, checkAddress)...)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			addresses, err := s.addresses(cmd.Context(), args)
			if err != nil {
				return err
			}
			return s.run(cmd, addresses[0])
		},
	}
	s.addFlags(cmd)
	return cmd
}

// checkTimeout is how long a member may take to answer.
const checkTimeout = 5 * time.Second

func (s *secretCheck) run(cmd *cobra.Command, address string) error {
	c, err := s.config()
	if err != nil {
		return err
	}
	if s.secret == "" {
		return errors.New("--secret-file is missing, and the agent's file has none")
	}
	secrets, err := admission.ReadSecrets(s.secret)
	if err != nil {
		return fmt.Errorf("--secret-file: %w", err)
	}
	view, err := look(cmd.Context(), c, []string{address})
	if err != nil {
		return err
	}
	var failed error
	for i, secret := range secrets {
		c := c
		c.Security.SecretFile, c.Security.Secret = "", secret
		for _, m := range view.Members() {
			ctx, cancel := context.WithTimeout(cmd.Context(), checkTimeout)
			_, err := pleach.Inspect(ctx, c, m.Address)
			cancel()
			text := "accepted"
			if err != nil {
				text = cli.ShellText(err)
				failed = errors.New("some members do not accept all secrets: copy the file to their hosts, and check again")
			}
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "secret %d  %s  %s\n", i+1, cli.Printable(m.ID), text); err != nil {
				return cli.Failure(err)
			}
		}
	}
	return cli.Failure(failed)
}
