package deploy

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/config"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// The certificate of the manifest with TLS, as cert-manager writes it into its Secret, is for every
// pod of the StatefulSet, and for no other process; the variables name its files; and agents with
// these settings make a group.
func TestTLSManifest(t *testing.T) {
	const name = "kubernetes/statefulset-tls.yaml"
	parts := documents(t, name)
	var certificate struct {
		Spec struct {
			SecretName string `yaml:"secretName"`
			URIs       []string
		}
	}
	var set struct {
		Metadata struct{ Name string }
		Spec     struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Name         string
						Env          []struct{ Name, Value string }
						VolumeMounts []struct {
							Name      string
							MountPath string `yaml:"mountPath"`
						} `yaml:"volumeMounts"`
					}
					Volumes []struct {
						Name   string
						Secret struct {
							SecretName string `yaml:"secretName"`
						}
					}
				}
			}
		}
	}
	if err := parts[0].Decode(&certificate); err != nil {
		t.Fatal(err)
	}
	if err := parts[1].Decode(&set); err != nil {
		t.Fatal(err)
	}
	base, _ := workloadIn(t, "kubernetes/statefulset.yaml")
	agent, volume := set.Spec.Template.Spec.Containers[0], set.Spec.Template.Spec.Volumes[0]
	if mount := agent.VolumeMounts[0]; agent.Name != "agent" || mount.Name != volume.Name ||
		volume.Secret.SecretName != certificate.Spec.SecretName {
		t.Errorf("the agent %q has %+v from %+v", agent.Name, mount, volume)
	}
	dir, ca := t.TempDir(), testutil.NewCA(t)
	var uris []*url.URL
	for _, text := range certificate.Spec.URIs {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		uris = append(uris, u)
	}
	issued := ca.IssueNames(t, &x509.Certificate{URIs: uris})
	for file, data := range map[string][]byte{"tls.crt": issued.Cert, "tls.key": issued.Key, "ca.crt": issued.CA} {
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o440); err != nil {
			t.Fatal(err)
		}
	}
	environ := []string{"PLEACH_LISTEN=127.0.0.1:0", "PLEACH_EXPECT=1"}
	for _, e := range base.Spec.Template.Spec.Containers[0].Env {
		if e.Name == "PLEACH_GROUP" {
			environ = append(environ, e.Name+"="+e.Value)
		}
	}
	for _, e := range agent.Env {
		if path.Dir(e.Value) != agent.VolumeMounts[0].MountPath {
			t.Errorf("%s is not in the volume: %s", e.Name, e.Value)
		}
		environ = append(environ, e.Name+"="+filepath.Join(dir, path.Base(e.Value)))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var first *pleach.Group
	for i := range base.Spec.Replicas + 1 {
		c, err := config.Load("", append(slices.Clone(environ), fmt.Sprintf("PLEACH_ID=pleach-%d", i)), nil)
		if err != nil {
			t.Fatal(err)
		}
		g, err := c.GroupConfig("")
		if err != nil {
			t.Fatal(err)
		}
		g.Expect = 0
		var member *pleach.Group
		if first == nil {
			member, err = pleach.Create(ctx, g)
			first = member
		} else {
			member, err = pleach.Join(ctx, g, first.Self().Address)
		}
		if i == base.Spec.Replicas {
			if err == nil || !strings.Contains(err.Error(), "pleach-3") {
				t.Errorf("a pod that the certificate does not name: %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = member.Abort() }()
	}
}
