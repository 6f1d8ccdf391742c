package main

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// startControl starts etcd, the API server, the controllers, the scheduler and DNS.
func (c *cluster) startControl(ctx context.Context) error {
	if err := c.writeControlFiles(ctx); err != nil {
		return err
	}
	if err := c.start(controlSpace, "etcd", "etcd", "--data-dir", c.path("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls", "http://127.0.0.1:2379", "--advertise-client-urls", "http://127.0.0.1:2379"); err != nil {
		return err
	}
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	for _, args := range [][]string{
		{
			"kube-controller-manager", "--service-account-private-key-file=" + c.path("sa.key"),
			"--root-ca-file=" + c.path("apiserver.crt"), "--leader-elect=false",
			"--node-monitor-grace-period=12s",
		},
		{"kube-scheduler", "--leader-elect=false"},
	} {
		args = append(args, "--kubeconfig="+c.path("kubeconfig"))
		if err := c.start(controlSpace, args[0], append([]string{c.program(args[0])}, args[1:]...)...); err != nil {
			return err
		}
	}
	return c.startDNS()
}

// startAPIServer starts it, and returns when it answers. It has the address of its service itself,
// because nothing here forwards addresses of services.
func (c *cluster) startAPIServer(ctx context.Context) error {
	err := c.start(controlSpace, "kube-apiserver", c.program("kube-apiserver"), "--etcd-servers=http://127.0.0.1:2379",
		"--bind-address=0.0.0.0", "--advertise-address="+controlAddress, "--secure-port=443",
		"--cert-dir="+c.path(), "--client-ca-file="+c.path("ca.crt"), "--token-auth-file="+c.path("tokens"),
		"--service-cluster-ip-range="+serviceNet, "--service-account-issuer=https://cluster",
		"--service-account-key-file="+c.path("sa.pub"), "--service-account-signing-key-file="+c.path("sa.key"),
		"--authorization-mode=RBAC", "--allow-privileged=true")
	if err != nil {
		return err
	}
	return await(ctx, "the API server answers", func() bool {
		_, err := c.kubectl(ctx, nil, "get", "--raw", "/readyz")
		return err == nil
	})
}

func (c *cluster) startDNS() error {
	return c.start(controlSpace, "coredns", c.program("coredns"), "-conf", c.path("Corefile"))
}

func (c *cluster) writeControlFiles(ctx context.Context) error {
	if err := os.MkdirAll(c.path(), 0o755); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"tokens": `token0,admin,1,"system:masters"` + "\n",
		"kubeconfig": fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://%s", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: token0}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, controlAddress),
		"Corefile": fmt.Sprintf(`.:53 {
  errors
  kubernetes cluster.local {
    kubeconfig %s
    ttl 1
  }
}
`, c.path("kubeconfig")),
	} {
		if err := os.WriteFile(c.path(name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	for _, line := range []string{
		"openssl genrsa -out sa.key 2048",
		"openssl rsa -in sa.key -pubout -out sa.pub",
		"openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -subj /CN=ca -days 30",
	} {
		args := strings.Fields(line)
		if _, err := command(ctx, "", nil, append([]string{"env", "-C", c.path()}, args...)...); err != nil {
			return err
		}
	}
	return nil
}
