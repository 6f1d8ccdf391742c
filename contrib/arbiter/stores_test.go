package arbiter_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/contrib/arbiter"
	"github.com/pleach-go/pleach/contrib/arbiter/etcd"
	"github.com/pleach-go/pleach/contrib/arbiter/file"
	"github.com/pleach-go/pleach/contrib/arbiter/kubernetes"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Each store keeps the promise of an arbiter: of concurrent claims, a view is granted to at most one
// side, and none below one that was granted before.
func TestStores(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) func() (*arbiter.Arbiter, error){
		"memory": func(*testing.T) func() (*arbiter.Arbiter, error) {
			s := newMemory()
			return func() (*arbiter.Arbiter, error) { return arbiter.New(s), nil }
		},
		"file": func(t *testing.T) func() (*arbiter.Arbiter, error) {
			dir := t.TempDir()
			return func() (*arbiter.Arbiter, error) { return file.New(dir) }
		},
		"etcd": func(t *testing.T) func() (*arbiter.Arbiter, error) {
			url := startEtcd(t)
			return func() (*arbiter.Arbiter, error) { return etcd.New(etcd.Config{Endpoints: []string{url}}) }
		},
		"kubernetes": func(t *testing.T) func() (*arbiter.Arbiter, error) {
			c := startCluster(t)
			return func() (*arbiter.Arbiter, error) { return kubernetes.New(c.config("web")) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conform(t, open(t))
		})
	}
}

const (
	claimants = 8
	lastView  = 30
)

// conform has claimants, each with an arbiter of its own, claim the same views.
func conform(t *testing.T, open func() (*arbiter.Arbiter, error)) {
	var highest atomic.Uint64 // that was granted
	var mu sync.Mutex
	granted := make(map[uint64]int) // view to claimant
	var running sync.WaitGroup
	for by := range claimants {
		a, err := open()
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			for view := uint64(1); view <= lastView; view++ {
				before := highest.Load()
				ok, err := a.Grant(t.Context(), pleach.ArbiterClaim{Group: "web", View: view, Side: side(2*by, 2*by+1)})
				if err != nil {
					t.Errorf("view %d, side %d: %v", view, by, err)
					return
				}
				if !ok {
					continue
				}
				if view < before {
					t.Errorf("view %d was granted after view %d", view, before)
				}
				for h := highest.Load(); h < view && !highest.CompareAndSwap(h, view); h = highest.Load() {
				}
				mu.Lock()
				if other, taken := granted[view]; taken {
					t.Errorf("view %d was granted to sides %d and %d", view, other, by)
				}
				granted[view] = by
				mu.Unlock()
			}
		})
	}
	running.Wait()
	by, ok := granted[lastView]
	if !ok {
		t.Fatalf("the last view was granted to nobody: %v", granted)
	}
	a, err := open()
	if err != nil {
		t.Fatal(err)
	}
	for other := range claimants { // the record outlasts those who have made it
		ok, err := a.Grant(t.Context(), pleach.ArbiterClaim{Group: "web", View: lastView, Side: side(2*other, 2*other+1)})
		if err != nil || ok != (other == by) {
			t.Errorf("view %d was granted to side %d, and to side %d: %v, %v", lastView, by, other, ok, err)
		}
	}
	t.Logf("granted to sides: %v", granted)
}

// A store that cannot be reached gives an error and grants nothing. A server that does not answer is
// skipped.
func TestUnreachable(t *testing.T) {
	gone := "http://" + testutil.FreeAddresses(t, 1)[0]
	a, err := etcd.New(etcd.Config{Endpoints: []string{gone}})
	if err != nil {
		t.Fatal(err)
	}
	claim := pleach.ArbiterClaim{Group: "web", View: 2, Side: side(0)}
	if ok, err := a.Grant(t.Context(), claim); ok || err == nil {
		t.Errorf("%v, %v", ok, err)
	}
	if a, err := file.New(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Errorf("a directory that does not exist: %v", a)
	}
	a, err = etcd.New(etcd.Config{Endpoints: []string{gone, startEtcd(t)}})
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := a.Grant(t.Context(), claim); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

// A server that hangs uses up one call, and the next call begins with another server.
func TestHangingServer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	a, err := etcd.New(etcd.Config{Endpoints: []string{"http://" + silent.Addr().String(), startEtcd(t)}})
	if err != nil {
		t.Fatal(err)
	}
	claim := pleach.ArbiterClaim{Group: "web", View: 2, Side: side(0)}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if ok, err := a.Grant(ctx, claim); ok || err == nil {
		t.Errorf("%v, %v", ok, err)
	}
	if ok, err := a.Grant(t.Context(), claim); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

// With accounts in etcd, the arbiter needs one.
func TestEtcdAccount(t *testing.T) {
	url := startEtcd(t)
	for _, call := range [][2]string{
		{"user/add", `{"name": "root", "password": "secret"}`},
		{"user/grant", `{"user": "root", "role": "root"}`},
		{"user/add", `{"name": "web", "password": "mine"}`},
		{"role/add", `{"name": "web"}`},
		{"role/grant", fmt.Sprintf(`{"name": "web", "perm": {"permType": "READWRITE", "key": %q}}`,
			base64.StdEncoding.EncodeToString([]byte(etcd.DefaultPrefix+"web")))},
		{"user/grant", `{"user": "web", "role": "web"}`},
		{"enable", `{}`},
	} {
		response, err := http.Post(url+"/v3/auth/"+call[0], "application/json", strings.NewReader(call[1]))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%v: %s", call, response.Status)
		}
	}
	for account, group := range map[[2]string]string{{"web", "mine"}: "web", {"web", "other"}: "", {}: ""} {
		a, err := etcd.New(etcd.Config{Endpoints: []string{url}, Username: account[0], Password: account[1]})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range []string{"web", "another"} {
			ok, err := a.Grant(t.Context(), pleach.ArbiterClaim{Group: g, View: 2, Side: side(0)})
			if ok != (g == group) || (err == nil) != ok {
				t.Errorf("%v, group %s: %v, %v", account, g, ok, err)
			}
		}
	}
}

// Groups whose names are alike do not share records in a directory, and a file that is incomplete is
// not a record.
func TestFileNames(t *testing.T) {
	dir := t.TempDir()
	a, err := file.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".new-1"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	groups := []string{"", "a", "a.b", "a/b", "../a", ".", "a.00000000000000000001", "a.00000000000000000001.json"}
	for i, g := range groups {
		for view := range uint64(3) {
			if ok, err := a.Grant(t.Context(), pleach.ArbiterClaim{Group: g, View: view + 1, Side: side(i)}); !ok || err != nil {
				t.Errorf("%q: %v, %v", g, ok, err)
			}
		}
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(names) != 3*len(groups) {
		t.Errorf("%v: %q", err, names)
	}
}

// The credentials of a pod change while it runs. Groups may share a Lease.
func TestKubernetesAccount(t *testing.T) {
	c := startCluster(t)
	config := c.config("web")
	a, err := kubernetes.New(config)
	if err != nil {
		t.Fatal(err)
	}
	view := uint64(1)
	grant := func(group string) (bool, error) {
		view++
		return a.Grant(t.Context(), pleach.ArbiterClaim{Group: group, View: view, Side: side(0)})
	}
	if ok, err := grant("web"); !ok || err != nil {
		t.Fatalf("%v, %v", ok, err)
	}
	view = 1
	if ok, err := grant("another group"); !ok || err != nil {
		t.Errorf("another group shares the Lease: %v, %v", ok, err)
	}
	if ok, err := grant("web"); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	for _, name := range []string{"token", "ca.crt"} {
		path := filepath.Join(config.Account, name)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		bad := []byte("bad")
		if name == "ca.crt" {
			bad = testutil.NewCA(t).Issue(t).CA
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if ok, err := grant("web"); ok || err == nil {
			t.Errorf("with a bad %s: %v, %v", name, ok, err)
		}
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
		if ok, err := grant("web"); !ok || err != nil {
			t.Errorf("with a good %s again: %v, %v", name, ok, err)
		}
	}
	other := config
	other.Lease = "other"
	a, err = kubernetes.New(other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := grant("other"); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("the role of the page is for one Lease, but another one gives %v", err)
	}
}

// need skips a test for want of a program.
func need(t *testing.T, program string) string {
	t.Helper()
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	built, err := filepath.Abs(filepath.Join("../../bin/cluster/bin", program)) // make cluster
	if err == nil {
		_, err = os.Stat(built)
	}
	if err != nil {
		t.Skipf("needs %s", program)
	}
	return built
}

// run starts a program, which is killed when the test ends.
func run(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// startEtcd starts a server and returns its URL.
func startEtcd(t *testing.T) string {
	t.Helper()
	program := need(t, "etcd")
	addresses := testutil.FreeAddresses(t, 2)
	url := "http://" + addresses[0]
	run(t, program, "--data-dir", t.TempDir(), "--listen-client-urls", url, "--advertise-client-urls", url,
		"--listen-peer-urls", "http://"+addresses[1], "--log-level", "error")
	testutil.Eventually(t, "etcd is ready", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/health", nil)
		if err != nil {
			return false
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return url
}

// cluster is an API server with its etcd, and the directory of a service account that may do what
// docs/guide/adapters.md says.
type cluster struct{ url, account string }

const operatorToken = "operator"

func startCluster(t *testing.T) *cluster {
	t.Helper()
	server, kubectl := need(t, "kube-apiserver"), need(t, "kubectl")
	dir, address := t.TempDir(), testutil.FreeAddresses(t, 1)[0]
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	block := pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	files := map[string][]byte{
		"sa.key": pem.EncodeToMemory(&block),
		"tokens": []byte(operatorToken + ",operator,1,system:masters\n"),
	}
	write(t, dir, files)
	host, port, _ := strings.Cut(address, ":")
	run(t, server, "--etcd-servers", startEtcd(t), "--bind-address", host, "--advertise-address", "10.0.0.1",
		"--secure-port", port, "--cert-dir", dir, "--service-account-issuer", "https://"+address,
		"--service-account-key-file", dir+"/sa.key", "--service-account-signing-key-file", dir+"/sa.key",
		"--token-auth-file", dir+"/tokens", "--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.96.0.0/16",
		"--disable-admission-plugins", "ServiceAccount") // no controller makes accounts here
	c := &cluster{"https://" + address, t.TempDir()}
	home := t.TempDir()
	control := func(input string, args ...string) (string, error) {
		cmd := exec.Command(kubectl,
			append([]string{"--server", c.url, "--token", operatorToken, "--insecure-skip-tls-verify"}, args...)...)
		cmd.Stdin = strings.NewReader(input)
		cmd.Env = append(os.Environ(), "HOME="+home, "KUBECONFIG=")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	testutil.Eventually(t, "kube-apiserver is ready", func() bool {
		_, err := control("", "get", "--raw", "/readyz")
		return err == nil
	})
	must := func(input string, args ...string) string {
		t.Helper()
		out, err := control(input, args...)
		if err != nil {
			t.Fatalf("kubectl %v: %v: %s", args, err, out)
		}
		return out
	}
	must("", "create", "serviceaccount", "web")
	must(roleOfPage(t), "apply", "-f", "-")
	ca, err := os.ReadFile(filepath.Join(dir, "apiserver.crt"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, c.account, map[string][]byte{
		"token": []byte(must("", "create", "token", "web")), "ca.crt": ca, "namespace": []byte("default"),
	})
	return c
}

func (c *cluster) config(lease string) kubernetes.Config {
	return kubernetes.Config{Lease: lease, Server: c.url, Account: c.account}
}

func write(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// roleOfPage returns the manifest of the page.
func roleOfPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/guide/adapters.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(page), "```yaml\n")
	manifest, _, closed := strings.Cut(after, "```")
	if !found || !closed {
		t.Fatal("the page has no manifest")
	}
	return manifest
}
