package ulfm

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed program/kill.c
var source []byte

// Program is the MPI program, compiled.
type Program struct {
	// Version is that of Open MPI.
	Version string

	prefix []string // of each command: chroot and the root directory, or nothing
	root   string   // where commands have their root
	dir    string   // of the program, as commands see it
}

// Find looks for an Open MPI with ULFM in PATH or, unless root is empty, in that
// directory, by chroot, and compiles the program there. If there is none, without
// says why.
func Find(ctx context.Context, root string) (p *Program, without string, err error) {
	p = &Program{root: "/"}
	temporary := os.TempDir()
	if root != "" {
		p.prefix, p.root, temporary = []string{"chroot", root}, root, "/tmp"
	}
	info, err := p.command(ctx, "ompi_info", "--parsable").Output()
	if err != nil {
		return nil, "ompi_info does not run: " + reason(err), ctx.Err()
	}
	var supported bool
	p.Version, supported = parseInfo(info)
	if !supported {
		return nil, fmt.Sprintf("Open MPI %s is built without it", p.Version), nil
	}
	host, err := os.MkdirTemp(filepath.Join(root, temporary), "pleach-ulfm-")
	if err != nil {
		return nil, "", err
	}
	p.dir = filepath.Join(temporary, filepath.Base(host))
	if err := os.WriteFile(filepath.Join(host, "kill.c"), source, 0o600); err != nil {
		p.Remove()
		return nil, "", err
	}
	if output, err := p.command(ctx, "mpicc", "-O2", "-o", p.dir+"/kill", p.dir+"/kill.c").CombinedOutput(); err != nil {
		p.Remove()
		return nil, fmt.Sprintf("mpicc cannot compile: %s: %s", reason(err), bytes.TrimSpace(output)), ctx.Err()
	}
	return p, "", nil
}

// parseInfo reads what ompi_info --parsable prints.
func parseInfo(info []byte) (version string, supported bool) {
	for line := range strings.Lines(string(info)) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), ":"); {
		case key == "ident":
			version = value
		case key == "options" && value == "ft_mpi_support:yes":
			supported = true
		}
	}
	return version, supported
}

// reason is what a command has said, or why it did not run.
func reason(err error) string {
	if exit, ok := err.(*exec.ExitError); ok && len(exit.Stderr) > 0 {
		return string(bytes.TrimSpace(exit.Stderr))
	}
	return err.Error()
}

// command is one that runs where Open MPI is.
func (p *Program) command(ctx context.Context, args ...string) *exec.Cmd {
	args = p.args(args...)
	return exec.CommandContext(ctx, args[0], args[1:]...)
}

func (p *Program) args(args ...string) []string { return slices.Concat(p.prefix, args) }

// Remove removes the program.
func (p *Program) Remove() {
	if p != nil {
		_ = os.RemoveAll(filepath.Join(p.root, p.dir))
	}
}
