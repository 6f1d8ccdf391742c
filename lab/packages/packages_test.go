//go:build unix

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// run runs a command that must succeed.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	text, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, text)
	}
	return string(text)
}

// A package is built as a release is, installed below a directory, run from there and removed.
func TestPackages(t *testing.T) {
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	b := &build{root: root, version: "v1.2.3-rc.1", commit: "0123abc", time: time.Unix(1e9, 0).UTC()}
	dir := t.TempDir()
	out, again := filepath.Join(dir, "dist"), filepath.Join(dir, "again")
	for _, directory := range []string{out, again} {
		if err := b.packageAll(directory, filepath.Join(dir, "work"), []string{"linux/" + runtime.GOARCH}); err != nil {
			t.Fatal(err)
		}
	}
	base := filepath.Join(out, "pleach_1.2.3-rc.1_linux_"+runtime.GOARCH)

	t.Run("same again", func(t *testing.T) {
		first, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
		second, err2 := os.ReadFile(filepath.Join(again, "SHA256SUMS"))
		if err := cmp.Or(err, err2); err != nil || !bytes.Equal(first, second) || bytes.Count(first, []byte("\n")) != 3 {
			t.Errorf("%v: %s\nthen: %s", err, first, second)
		}
	})
	t.Run("tarball", func(t *testing.T) {
		dir := t.TempDir()
		run(t, "tar", "-xzf", base+".tar.gz", "-C", dir)
		if got := run(t, filepath.Join(dir, filepath.Base(base), "bin", "pleach"), "version"); !strings.HasPrefix(got,
			"pleach v1.2.3-rc.1 ") {
			t.Error(got)
		}
	})
	t.Run("deb", func(t *testing.T) { testDeb(t, base+".deb", b.commit) })
	t.Run("from scratch",
		func(t *testing.T) { testFromScratch(t, filepath.Join(dir, "work", "linux-"+runtime.GOARCH, "pleach")) })
	t.Run("sbom", func(t *testing.T) {
		var list bom
		data, err := os.ReadFile(base + ".cdx.json")
		if err := cmp.Or(err, json.Unmarshal(data, &list)); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(list.Components, func(c component) bool {
			return strings.HasPrefix(c.URL, "pkg:golang/github.com/spf13/cobra@v")
		}) {
			t.Errorf("%s", data)
		}
		content := run(t, "tar", "-tzf", base+".tar.gz")
		if !strings.Contains(content, "/LICENSE\n") {
			t.Errorf("no licence of the package in %s", content)
		}
		for _, c := range list.Components {
			if c.Name == ours || strings.HasPrefix(c.Name, ours+"/") {
				continue // it has the licence of the package
			}
			if !strings.Contains(content, "/"+licenceFolder+"/"+c.Name+"/") {
				t.Errorf("no licence of %s in %s", c.Name, content)
			}
		}
	})
}

func testDeb(t *testing.T, deb, commit string) {
	root := t.TempDir()
	for _, dir := range []string{"info", "updates", "triggers"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	dpkg := func(args ...string) string {
		t.Helper()
		return run(t, "dpkg",
			append([]string{"--root=" + root, "--log=/dev/null", "--force-not-root", "--force-script-chrootless"}, args...)...)
	}
	dpkg("--install", deb)
	for _, file := range []string{
		"usr/bin/pleach", "usr/lib/systemd/system/pleach-agent.service", "usr/lib/sysusers.d/pleach.conf",
		"usr/share/man/man1/pleach-agent.1.gz", "usr/share/bash-completion/completions/pleach",
		"usr/share/zsh/vendor-completions/_pleach", "usr/share/fish/vendor_completions.d/pleach.fish",
		"usr/share/doc/pleach/copyright", "usr/share/doc/pleach/licenses/std/LICENSE", "etc/pleach/agent.yaml",
	} {
		if info, err := os.Stat(filepath.Join(root, file)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
	if got := run(t, filepath.Join(root, "usr/bin/pleach"), "version"); !strings.Contains(got, "\ncommit "+commit+"\n") {
		t.Error(got)
	}
	if got := dpkg("--verify", "pleach"); got != "" {
		t.Errorf("dpkg --verify: %s", got)
	}
	if got := run(t, "dpkg-deb", "--field", deb, "Version"); got != "1.2.3~rc.1\n" {
		t.Errorf("version %s", got)
	}
	// Settings are kept until the package is purged.
	settings := filepath.Join(root, "etc/pleach/agent.yaml")
	dpkg("--remove", "pleach")
	if _, err := os.Stat(settings); err != nil {
		t.Error(err)
	}
	dpkg("--purge", "pleach")
	if _, err := os.Stat(settings); err == nil {
		t.Error("the settings are still there after --purge")
	}
}

// An agent runs where there is nothing but its command and two directories, as in the image of
// deploy/Dockerfile: it becomes ready, and leaves when it is asked to end.
func testFromScratch(t *testing.T, binary string) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the root directory")
	}
	const user = 65532
	root := t.TempDir()
	for _, directory := range []string{"usr/bin", "run/pleach", "var/lib/pleach"} {
		directory = filepath.Join(root, directory)
		if err := cmp.Or(os.MkdirAll(directory, 0o755), os.Chown(directory, user, user)); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmp.Or(os.Chmod(root, 0o755), os.Link(binary, filepath.Join(root, "usr/bin/pleach"))); err != nil {
		t.Fatal(err)
	}
	inside := func(args ...string) *exec.Cmd {
		cmd := exec.Command("/usr/bin/pleach", args...)
		cmd.Dir = "/"
		cmd.Env = []string{"PLEACH_SOCKET=/run/pleach/agent.sock", "PLEACH_DATA_DIR=/var/lib/pleach"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: user, Gid: user}}
		return cmd
	}
	var log bytes.Buffer
	agent := inside("agent", "--expect", "1", "--listen", "127.0.0.1:0")
	agent.Stderr = &log
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- agent.Wait() }()
	defer agent.Process.Kill()
	for inside("health", "--ready").Run() != nil {
		select {
		case err := <-exited:
			t.Fatalf("the agent has ended: %v\n%s", err, &log)
		case <-time.After(50 * time.Millisecond):
		}
	}
	if err := agent.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-exited; err != nil || !strings.Contains(log.String(), "msg=left") {
		t.Errorf("%v\n%s", err, &log)
	}
}

// The source is described by git, where it is there.
func TestDescribe(t *testing.T) {
	b, err := describe()
	if err != nil {
		t.Skip(err)
	}
	if !strings.HasPrefix(b.version, "v") || len(b.commit) < 40 || b.time.IsZero() || !filepath.IsAbs(b.root) {
		t.Errorf("got %+v", b)
	}
}

// Commits after a tag sort after it, and candidates for a release before it.
func TestVersions(t *testing.T) {
	for described, want := range map[string]string{
		"v1.2.3": "1.2.3", "v1.2.3-5-g0123abc": "1.2.3+5.g0123abc", "v1.2.3-rc.1": "1.2.3~rc.1",
	} {
		b := build{version: afterTag.ReplaceAllString(described, "+$1.$2")}
		if got := b.debVersion(); got != want {
			t.Errorf("%s: got %s, want %s", described, got, want)
		}
	}
}

// Licences, notices and patents go with a module, in any spelling, and no other file does; a module
// without them is refused.
func TestLicences(t *testing.T) {
	dir := t.TempDir()
	if _, err := licencesIn(dir, "m"); err == nil {
		t.Error("a module without a licence is taken")
	}
	for _, name := range []string{"LICENSE.txt", "Licence", "NOTICE", "COPYING", "PATENTS", "licensed.go"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := licencesIn(dir, "example.org/m")
	var got []string
	for _, f := range files {
		got = append(got, f.path)
	}
	want := []string{"COPYING", "LICENSE.txt", "Licence", "NOTICE", "PATENTS"}
	for i := range want {
		want[i] = licenceFolder + "/example.org/m/" + want[i]
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}
