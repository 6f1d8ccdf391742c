package deploy

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/contrib/arbiter/kubernetes"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// cluster is a kube-apiserver with its etcd, and nothing that would run a pod.
type cluster struct {
	t       *testing.T
	address string
	ca      string // the file with the certificate of its CA
}

const clusterToken = "operator"

// newCluster starts one, if the programs are there: make kubernetes builds the first.
func newCluster(t *testing.T) *cluster {
	for _, program := range []string{"kube-apiserver", "etcd", "kubectl"} {
		need(t, program)
	}
	dir, addresses := t.TempDir(), testutil.FreeAddresses(t, 3)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	block := pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	for name, data := range map[string][]byte{
		"sa.key": pem.EncodeToMemory(&block),
		"tokens": []byte(clusterToken + ",operator,1,system:masters\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string, args ...string) {
		cmd := exec.Command(name, args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
	run("etcd", "--data-dir", dir+"/etcd", "--listen-client-urls", "http://"+addresses[0], "--advertise-client-urls",
		"http://"+addresses[0],
		"--listen-peer-urls", "http://"+addresses[1])
	host, port, _ := strings.Cut(addresses[2], ":")
	run("kube-apiserver", "--etcd-servers", "http://"+addresses[0], "--bind-address", host, "--secure-port", port,
		"--cert-dir", dir,
		"--service-account-issuer", "https://"+addresses[2], "--service-account-key-file", dir+"/sa.key",
		"--service-account-signing-key-file", dir+"/sa.key",
		"--token-auth-file", dir+"/tokens", "--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.96.0.0/16",
		"--disable-admission-plugins", "ServiceAccount") // no controller makes accounts here
	c := &cluster{t, "https://" + addresses[2], filepath.Join(dir, "apiserver.crt")}
	testutil.Eventually(t, "kube-apiserver is ready", func() bool {
		_, err = c.kubectl("", "get", "--raw", "/readyz")
		return err == nil
	}, func() any { return err })
	return c
}

// kubectl runs a command of an operator, and returns what it prints.
func (c *cluster) kubectl(input string, args ...string) (string, error) {
	cmd := exec.Command("kubectl",
		append([]string{"--server", c.address, "--token", clusterToken, "--insecure-skip-tls-verify"}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	cmd.Env = append(os.Environ(), "HOME="+c.t.TempDir(), "KUBECONFIG=")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *cluster) must(input string, args ...string) string {
	c.t.Helper()
	out, err := c.kubectl(input, args...)
	if err != nil {
		c.t.Fatalf("kubectl %v: %v: %s", args, err, out)
	}
	return out
}

// An API server takes the manifests with every field, twice without a change, and pod security
// takes their pods: those of the StatefulSet at its strictest level, and those of the DaemonSet,
// which have directories of their node, at none but the lowest.
func TestManifestsOnAPIServer(t *testing.T) {
	c := newCluster(t)
	for namespace, level := range map[string]string{"strict": "restricted", "nodes": "privileged"} {
		c.must("", "create", "namespace", namespace)
		c.must("", "label", "namespace", namespace, "pod-security.kubernetes.io/enforce="+level)
	}
	namespaces := map[string]string{"kubernetes/statefulset.yaml": "strict", "kubernetes/daemonset.yaml": "nodes"}
	for name, namespace := range namespaces {
		apply := []string{"apply", "--server-side", "--validate=strict", "-n", namespace, "-f", name}
		c.must("", append(apply, "--dry-run=server")...)
		c.must("", apply...)
		before := c.must("", "get", "-n", namespace, "-o", "jsonpath={.metadata.generation}", "-f", name)
		c.must("", apply...)
		if after := c.must("", "get", "-n", namespace, "-o", "jsonpath={.metadata.generation}", "-f", name); after != before {
			t.Errorf("%s: applied again, its generation is %q instead of %q", name, after, before)
		}
		pod := podOf(t, name)
		c.must(pod, "create", "-n", namespace, "-f", "-")
		out, err := c.kubectl(strings.Replace(pod, `"probe"`, `"probe-2"`, 1), "create", "-n", "strict", "--dry-run=server",
			"-f", "-")
		if refused := err != nil && strings.Contains(out, "hostPath"); refused != (namespace == "nodes") || err != nil &&
			!refused {
			t.Errorf("%s: where pods are restricted: %v: %s", name, err, out)
		}
	}
	bad := bytes.Replace(read(t, "kubernetes/statefulset.yaml"), []byte("replicas:"), []byte("replica:"), 1)
	if out, err := c.kubectl(string(bad), "apply", "--server-side", "--validate=strict", "--dry-run=server", "-n",
		"strict", "-f", "-"); err == nil {
		t.Errorf("a field that Kubernetes does not know passes: %s", out)
	}
}

// The account of the chart may do what agents do, and nothing else: swap the record in the Lease of the chart, which
// survives another helm upgrade, and list the pods of the group.
func TestHelmAccountOnAPIServer(t *testing.T) {
	need(t, "helm")
	c := newCluster(t)
	manifest, err := exec.Command("helm", "template", "--kube-version", kubeVersion, "web", "helm/pleach", "--set",
		"replicas=2,expect=2,arbiter.lease=pair,seeds.endpointSlice=true").Output()
	if err != nil {
		t.Fatal(err)
	}
	apply := func() { c.must(string(manifest), "apply", "--validate=strict", "-f", "-") }
	apply()
	for _, call := range []struct {
		may  bool
		what []string
	}{
		{true, []string{"get", "leases/pair"}},
		{true, []string{"update", "leases/pair"}},
		{true, []string{"list", "endpointslices"}},
		{false, []string{"create", "leases"}},
		{false, []string{"update", "leases/other"}},
		{false, []string{"delete", "leases/pair"}},
		{false, []string{"list", "endpointslices", "-n", "kube-system"}},
		{false, []string{"list", "pods"}},
	} {
		args := append([]string{"auth", "can-i", "--as", "system:serviceaccount:default:web"}, call.what...)
		out, err := c.kubectl("", args...)
		if may := err == nil && strings.Contains(out, "yes"); may != call.may {
			t.Errorf("%v: %v: %s", call.what, err, out)
		}
	}
	grant := func(view uint64, rank int) bool {
		t.Helper()
		granted, err := c.arbiter("web", "pair").Grant(t.Context(), pleach.ArbiterClaim{
			Group: "web", View: view, Side: []pleach.Member{{Rank: rank, Incarnation: 1}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return granted
	}
	if !grant(7, 0) || grant(7, 1) {
		t.Error("the arbiter does not grant a view to one side")
	}
	apply()
	if grant(7, 1) || !grant(8, 1) {
		t.Error("the arbiter has forgotten what it has granted")
	}
}

// arbiter returns the arbiter of a Lease, as the pods of a service account use it.
func (c *cluster) arbiter(account, lease string) pleach.Arbiter {
	c.t.Helper()
	directory := c.t.TempDir()
	ca, err := os.ReadFile(c.ca)
	if err != nil {
		c.t.Fatal(err)
	}
	for name, data := range map[string]string{
		"token": c.must("", "create", "token", account), "namespace": "default", "ca.crt": string(ca),
	} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(data), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	a, err := kubernetes.New(kubernetes.Config{Lease: lease, Server: c.address, Account: directory})
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// podOf returns a pod as a manifest's controller would make it, as JSON.
func podOf(t *testing.T, name string) string {
	t.Helper()
	_, fields := workloadIn(t, name)
	template := fields.(map[string]any)["spec"].(map[string]any)["template"].(map[string]any)
	template["apiVersion"], template["kind"] = "v1", "Pod"
	template["metadata"].(map[string]any)["name"] = "probe"
	if volumes := template["spec"].(map[string]any)["volumes"].([]any); strings.Contains(name, "statefulset") {
		claim := map[string]any{"name": "data", "persistentVolumeClaim": map[string]any{"claimName": "data-probe"}}
		template["spec"].(map[string]any)["volumes"] = append(volumes, claim)
	}
	text, err := json.Marshal(template)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
