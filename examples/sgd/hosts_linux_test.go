package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/internal/test/netns"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// sshHosts starts sshd on hosts and returns how a job gets there, from a host of its own.
func sshHosts(t *testing.T, hosts, slots int) (*netns.Net, *launch.Hosts) {
	t.Helper()
	sshd, err := exec.LookPath("/usr/sbin/sshd")
	if err != nil {
		t.Skip(err)
	}
	network := netns.New(t, hosts+1)
	folder := t.TempDir()
	key, config := filepath.Join(folder, "key"), filepath.Join(folder, "config")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).Run())
	must(os.MkdirAll("/run/sshd", 0o755)) // sshd wants it
	must(os.WriteFile(config, fmt.Appendf(nil,
		"HostKey %s\nAuthorizedKeysFile %s.pub\nPidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n", key,
		key), 0o600))
	self, err := os.Executable()
	must(err)
	job := &launch.Hosts{Pleach: self, Silence: 3 * time.Second}
	for host := range hosts {
		server := network.Command(host, sshd, "-D", "-f", config)
		must(server.Start())
		t.Cleanup(func() {
			network.Kill(host)
			_ = server.Wait()
		})
		job.List = append(job.List, launch.Host{Name: network.Address(host), Slots: slots})
	}
	job.SSH = network.Command(hosts, "ssh", "-i", key, "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
		"-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "ConnectionAttempts=20").Args
	return network, job
}

// watched is the output of a job. It does something when a line begins as expected.
type watched struct {
	bytes.Buffer
	when map[string]func()
}

func (w *watched) Write(b []byte) (int, error) {
	for start, do := range w.when {
		if strings.HasPrefix(string(b), start) {
			do()
		}
	}
	return w.Buffer.Write(b)
}

// A host that is cut off and one that dies are like dead processes: those of the first host
// have a quorum each time, and the model is that of a run on one host.
func TestModelIsTheSameAlthoughHostsAreLost(t *testing.T) {
	if testutil.RaceEnabled {
		t.Skip("its processes are slow to start with the race detector: .ci/run big runs it")
	}
	network, hosts := sshHosts(t, 3, 2)
	var complaint bytes.Buffer
	out := &watched{when: map[string]func(){
		"step 100:": func() { network.Cut(1) },
		"step 300:": func() { network.Kill(2) },
	}}
	report, err := launch.Run(launch.Job{
		Size: 6, Args: []string{os.Args[0]}, Hosts: hosts, Env: []string{"PLEACH_SUSPICION_TIMEOUT=1s"}, Grace: time.Second,
		Output: &launch.Output{Stdout: launch.Stream{Writer: out}, Stderr: launch.Stream{Writer: &complaint}},
	})
	if err != nil {
		t.Fatalf("%v: %s", err, complaint.String())
	}
	model := regexp.MustCompile(`model [0-9a-f]{16} after 600 steps`)
	want, got := model.FindString(train(t, 6)), model.FindString(out.String())
	if want == "" || got != want {
		t.Errorf("got %q, want %q: %s%s", got, want, out.String(), complaint.String())
	}
	for _, o := range report.Outcomes {
		wanted := "exit code 0"
		if host := o.Rank / 2; host > 0 {
			wanted = "lost with host " + network.Address(host)
		}
		if o.Text != wanted {
			t.Errorf("rank %d: %s, want %s", o.Rank, o.Text, wanted)
		}
	}
}

// Processes that another launcher has started on several hosts know one address, meet there,
// and train the same model.
func TestModelIsTheSameAfterARendezvousOfHosts(t *testing.T) {
	if testutil.RaceEnabled {
		t.Skip("its processes are slow to start with the race detector: .ci/run big runs it")
	}
	const hosts, size = 3, 6
	network := netns.New(t, hosts)
	var processes [size]*exec.Cmd
	var outputs [size]bytes.Buffer
	for rank := size - 1; rank >= 0; rank-- { // rank 0 comes last
		p := network.Command(rank%hosts, os.Args[0])
		p.Env = append(os.Environ(), "PLEACH_RENDEZVOUS="+network.Address(0)+":27600",
			"PLEACH_SECRET=of sixteen bytes or more",
			fmt.Sprint("PLEACH_RANK=", rank), fmt.Sprint("PLEACH_SIZE=", size))
		p.Stdout, p.Stderr = &outputs[rank], &outputs[rank]
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		processes[rank] = p
	}
	for rank, p := range processes {
		if err := p.Wait(); err != nil {
			t.Errorf("rank %d: %v: %s", rank, err, outputs[rank].String())
		}
	}
	model := regexp.MustCompile(`model [0-9a-f]{16} after 600 steps`)
	want, got := model.FindString(train(t, size)), model.FindString(outputs[0].String())
	if want == "" || got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
