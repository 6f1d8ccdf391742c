// Package deploy tests the files by which Pleach is installed.
package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/pleach-go/pleach/agent/config"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func need(t *testing.T, command string) {
	t.Helper()
	if _, err := exec.LookPath(command); err != nil {
		t.Skip(err)
	}
}

// The settings that packages install are accepted, and fit the unit's directories.
func TestSettings(t *testing.T) {
	c, err := config.Load("agent.yaml", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.DataDir != "/var/lib/pleach" || c.Socket != "/run/pleach/agent.sock" || c.Expect != 1 {
		t.Errorf("got %+v", c)
	}
}

// The unit is one that systemd takes, and exposes little of the host.
func TestUnit(t *testing.T) {
	need(t, "systemd-analyze")
	text := string(read(t, "systemd/pleach-agent.service"))
	// The command is not installed here, nor kill everywhere.
	text = strings.NewReplacer("=/usr/bin/pleach", "=/bin/sh", "=/bin/kill", "=/bin/sh").Replace(text)
	unit := filepath.Join(t.TempDir(), "pleach-agent.service")
	if err := os.WriteFile(unit, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"verify", "--man=no", unit},
		{"security", "--offline=true", "--threshold=20", unit}, // of 100
	} {
		if out, err := exec.Command("systemd-analyze", args...).CombinedOutput(); err != nil || args[0] == "verify" &&
			bytes.Contains(out, []byte(unit)) {
			t.Errorf("systemd-analyze %v: %v\n%s", args, err, out)
		}
	}
}

// workload is what the tests look at of a DaemonSet or StatefulSet.
type workload struct {
	Kind string
	Spec struct {
		Replicas    int
		ServiceName string `yaml:"serviceName"`
		Selector    struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		}
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				Automount                     *bool           `yaml:"automountServiceAccountToken"`
				TerminationGracePeriodSeconds int             `yaml:"terminationGracePeriodSeconds"`
				SecurityContext               securityContext `yaml:"securityContext"`
				Containers                    []container
			}
		}
	}
}

type container struct {
	Env             []struct{ Name, Value string }
	SecurityContext securityContext `yaml:"securityContext"`
	Ports           []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
}

type securityContext struct {
	RunAsNonRoot           bool  `yaml:"runAsNonRoot"`
	RunAsUser              *int  `yaml:"runAsUser"`
	ReadOnlyRootFilesystem bool  `yaml:"readOnlyRootFilesystem"`
	Escalation             *bool `yaml:"allowPrivilegeEscalation"`
	Capabilities           struct{ Drop, Add []string }
	Seccomp                struct{ Type string } `yaml:"seccompProfile"`
}

var manifests = map[string]string{
	"kubernetes/statefulset.yaml": "StatefulSet",
	"kubernetes/daemonset.yaml":   "DaemonSet",
}

// documents decodes the parts of a manifest.
func documents(t *testing.T, name string) (all []yaml.Node) {
	t.Helper()
	d := yaml.NewDecoder(bytes.NewReader(read(t, name)))
	for {
		var node yaml.Node
		if err := d.Decode(&node); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, node)
	}
}

// workloadIn returns the part of a manifest that has the pods.
func workloadIn(t *testing.T, name string) (w workload, fields any) {
	t.Helper()
	for _, d := range documents(t, name) {
		if err := d.Decode(&w); err != nil {
			t.Fatal(err)
		}
		if w.Kind == manifests[name] {
			if err := d.Decode(&fields); err != nil {
				t.Fatal(err)
			}
			return w, fields
		}
	}
	t.Fatalf("%s has no %s", name, manifests[name])
	return w, nil
}

// The names in a manifest fit each other, and its variables are settings of an agent.
func TestManifests(t *testing.T) {
	for name := range manifests {
		w, _ := workloadIn(t, name)
		var service struct {
			Metadata struct{ Name string }
			Spec     struct{ Selector map[string]string }
		}
		if err := documents(t, name)[0].Decode(&service); err != nil {
			t.Fatal(err)
		}
		labels := fmt.Sprint(w.Spec.Template.Metadata.Labels)
		if fmt.Sprint(service.Spec.Selector) != labels || fmt.Sprint(w.Spec.Selector.MatchLabels) != labels {
			t.Errorf("%s: the selectors are not the pods' labels %s", name, labels)
		}
		if w.Spec.ServiceName != "" && w.Spec.ServiceName != service.Metadata.Name {
			t.Errorf("%s: service %s, want %s", name, w.Spec.ServiceName, service.Metadata.Name)
		}
		if w.Spec.Template.Spec.TerminationGracePeriodSeconds < 10 {
			t.Errorf("%s: there is no time to leave the group", name)
		}
		testPrivileges(t, name, &w)
		testVariables(t, name, service.Metadata.Name, w)
	}
}

// testPrivileges: the agent has no privilege.
func testPrivileges(t *testing.T, name string, w *workload) {
	pod, agent := w.Spec.Template.Spec.SecurityContext, w.Spec.Template.Spec.Containers[0].SecurityContext
	if !pod.RunAsNonRoot || agent.RunAsUser != nil || !slices.Equal(agent.Capabilities.Drop, []string{"ALL"}) ||
		agent.Capabilities.Add != nil {
		t.Errorf("%s: the agent may be root, or has capabilities: %+v, %+v", name, pod, agent)
	}
	if pod.Seccomp.Type != "RuntimeDefault" || !agent.ReadOnlyRootFilesystem || agent.Escalation == nil ||
		*agent.Escalation {
		t.Errorf("%s: the agent may call or write what it need not: %+v, %+v", name, pod, agent)
	}
	if token := w.Spec.Template.Spec.Automount; token == nil || *token {
		t.Errorf("%s: pods have a token of the API server", name)
	}
}

// As many pods may be moved at a time as leave a quorum.
func TestDisruptionBudget(t *testing.T) {
	const name = "kubernetes/statefulset.yaml"
	w, _ := workloadIn(t, name)
	var budget struct {
		Kind string
		Spec struct {
			MaxUnavailable int `yaml:"maxUnavailable"`
		}
	}
	for _, d := range documents(t, name) {
		if err := d.Decode(&budget); err != nil {
			t.Fatal(err)
		}
		if budget.Kind == "PodDisruptionBudget" {
			break
		}
	}
	if want := (w.Spec.Replicas - 1) / 2; w.Spec.Replicas != 3 || budget.Spec.MaxUnavailable != want {
		t.Errorf("%d of %d pods may be unavailable, want %d", budget.Spec.MaxUnavailable, w.Spec.Replicas, want)
	}
}

func testVariables(t *testing.T, name, service string, w workload) {
	var environ []string
	for _, e := range w.Spec.Template.Spec.Containers[0].Env {
		value := strings.NewReplacer("$(POD_IP)", "10.0.0.1", "$(NODE)", "node").Replace(e.Value)
		environ = append(environ, e.Name+"="+value)
		known := slices.ContainsFunc(config.Names(), func(setting string) bool { return config.Variable(setting) == e.Name })
		if strings.HasPrefix(e.Name, "PLEACH_") && !known {
			t.Errorf("%s: %s is no setting", name, e.Name)
		}
	}
	c, err := config.Load("", environ, nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	port := "10.0.0.1:"
	for _, p := range w.Spec.Template.Spec.Containers[0].Ports {
		if p.Name == "metrics" {
			port += fmt.Sprint(p.ContainerPort)
		}
	}
	if c.MetricsListen != port {
		t.Errorf("%s: metrics are at %s, and the port is %s", name, c.MetricsListen, port)
	}
	if c.Listen != "10.0.0.1:7000" || !slices.Equal(c.Seeds, []string{"dns:" + service + ":7000"}) || c.Expect == 0 {
		t.Errorf("%s: got %+v", name, c)
	}
}

// Kubernetes knows every field of the pods: kubectl leaves out what it does not know.
func TestManifestsForKubernetes(t *testing.T) {
	need(t, "kubectl")
	for name := range manifests {
		_, written := workloadIn(t, name)
		text, err := json.Marshal(written)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("kubectl", "set", "image", "--local", "-f", "-", "agent=changed", "-o", "json")
		cmd.Stdin = bytes.NewReader(text)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var known any
		if err := json.Unmarshal(bytes.Replace(out, []byte(`"changed"`), []byte(`"pleach"`), 1), &known); err != nil {
			t.Fatal(err)
		}
		for _, field := range missing(written, known, name) {
			t.Error(field)
		}
	}
}

// missing lists the fields that are written but not known.
func missing(written, known any, path string) (fields []string) {
	switch w := written.(type) {
	case map[string]any:
		k, _ := known.(map[string]any)
		for name, value := range w {
			fields = append(fields, missing(value, k[name], path+"."+name)...)
		}
	case []any:
		k, _ := known.([]any)
		for i, value := range w {
			if i >= len(k) {
				return append(fields, path)
			}
			fields = append(fields, missing(value, k[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
	default:
		if fmt.Sprint(written) != fmt.Sprint(known) {
			fields = append(fields, fmt.Sprintf("%s is %v, for kubectl %v", path, written, known))
		}
	}
	return fields
}
