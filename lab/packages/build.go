package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// build is one state of the source, from which all packages are made.
type build struct {
	// root is the directory of the source.
	root string
	// version is the tag, as v1.2.3. Commits after it are v1.2.3+5.g0123abc. Before there
	// is a tag, it is one that Go's tools would choose.
	version, commit string
	// time is when the commit was made: everything in packages has it.
	time time.Time
	// trim leaves this host's paths out of binaries. A test does without, because all
	// packages would be compiled again.
	trim bool
}

// platform is an operating system and a processor, as Go names them.
type platform struct{ os, arch string }

func parsePlatform(name string) (platform, error) {
	system, arch, ok := strings.Cut(name, "/")
	if !ok {
		return platform{}, fmt.Errorf("write os/arch, as in linux/amd64")
	}
	return platform{system, arch}, nil
}

// extension is that of commands.
func (p platform) extension() string {
	if p.os == "windows" {
		return ".exe"
	}
	return ""
}

// afterTag is what git appends to a tag, with the number of commits since.
var afterTag = regexp.MustCompile(`-(\d+)-(g[0-9a-f]+)`)

// describe asks git for the state of the source.
func describe() (*build, error) {
	root, err := output(exec.Command("git", "rev-parse", "--show-toplevel"))
	if err != nil {
		return nil, err
	}
	commit, err := output(exec.Command("git", "rev-parse", "HEAD"))
	if err != nil {
		return nil, err
	}
	seconds, err := output(exec.Command("git", "show", "--no-patch", "--format=%ct", "HEAD"))
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, err
	}
	b := &build{root: root, commit: commit, time: time.Unix(n, 0).UTC()}
	b.version, err = output(exec.Command("git", "describe", "--tags", "--match", "v[0-9]*", "--dirty"))
	b.version = afterTag.ReplaceAllString(b.version, "+$1.$2")
	if err != nil { // there is no tag yet
		b.version = fmt.Sprintf("v0.0.0-%s-%s", b.time.Format("20060102150405"), commit[:12])
	}
	return b, nil
}

// number is the version without the v of tags.
func (b *build) number() string { return strings.TrimPrefix(b.version, "v") }

// compile builds the command for a platform, static, unless that is done already. It returns
// where it is.
func (b *build) compile(work string, p platform) (string, error) {
	binary := filepath.Join(work, p.os+"-"+p.arch, "pleach"+p.extension())
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	flags := fmt.Sprintf("-s -w -X %[1]s.release=%[2]s -X %[1]s.commit=%[3]s", "github.com/pleach-go/pleach/agent/cli",
		b.version, b.commit)
	cmd := exec.Command("go", "build", "-buildvcs=false", "-ldflags", flags, "-o", binary)
	if b.trim {
		cmd.Args = append(cmd.Args, "-trimpath")
	}
	cmd.Args = append(cmd.Args, "github.com/pleach-go/pleach/agent/cmd/pleach")
	cmd.Dir = b.root // this command is of another module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch)
	_, err := output(cmd)
	return binary, err
}

// completions are the shells that pleach completion knows, and where they look.
var completions = map[string]string{
	"bash": "share/bash-completion/completions/pleach",
	"zsh":  "share/zsh/site-functions/_pleach",
	"fish": "share/fish/vendor_completions.d/pleach.fish",
}

// texts are the files other than the command: those of the source, and those that the command
// writes itself.
func (b *build) texts(command, work string) (files []file, err error) {
	add := func(from, to string) error {
		data, err := os.ReadFile(from)
		files = append(files, file{path: to, data: data, mode: 0o644})
		return err
	}
	for from, to := range map[string]string{
		"LICENSE":                             "share/doc/pleach/copyright",
		"CHANGELOG.md":                        "share/doc/pleach/CHANGELOG.md",
		"deploy/agent.yaml":                   "etc/pleach/agent.yaml",
		"deploy/systemd/pleach-agent.service": "lib/systemd/system/pleach-agent.service",
		"deploy/systemd/pleach.sysusers":      "lib/sysusers.d/pleach.conf",
	} {
		if err := add(filepath.Join(b.root, from), to); err != nil {
			return nil, err
		}
	}
	for shell, to := range completions {
		text, err := output(exec.Command(command, "completion", shell))
		if err != nil {
			return nil, err
		}
		files = append(files, file{path: to, data: []byte(text + "\n"), mode: 0o644})
	}
	pages := filepath.Join(work, "man1")
	man := exec.Command(command, "man", pages)
	// Pages have the date, and tell the default socket of a system's agent.
	man.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", b.time.Unix()), "XDG_RUNTIME_DIR=/run")
	if _, err := output(man); err != nil {
		return nil, err
	}
	names, err := filepath.Glob(filepath.Join(pages, "*.1"))
	for _, name := range names {
		if err := add(name, "share/man/man1/"+filepath.Base(name)); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return files, err
}

// output runs a command, and returns what it prints. An error has what it complains about.
func output(cmd *exec.Cmd) (string, error) {
	var complaints strings.Builder
	cmd.Stderr = &complaints
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, complaints.String())
	}
	return strings.TrimSpace(string(text)), nil
}
