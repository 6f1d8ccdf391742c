package deploy

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// kubeVersion is that of the cluster. Helm takes its own version's otherwise, or a very old one.
const kubeVersion = "1.34.1"

// rendered returns what the chart becomes with some values, by kind.
func rendered(t *testing.T, values ...string) (map[string]map[string]any, error) {
	t.Helper()
	args := []string{"template", "--kube-version", kubeVersion, "pleach", "helm/pleach"}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	out, err := exec.Command("helm", args...).CombinedOutput()
	if err != nil {
		return nil, errors.New(string(out))
	}
	all := make(map[string]map[string]any)
	for d := yaml.NewDecoder(bytes.NewReader(out)); ; {
		var part map[string]any
		if err := d.Decode(&part); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if part != nil {
			all[part["kind"].(string)] = part
		}
	}
}

// field returns a part of a document: names and, in lists, indexes.
func field(document any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := document.(map[string]any)
			document = m[step]
		case int:
			l, _ := document.([]any)
			if step >= len(l) {
				return nil
			}
			document = l[step]
		}
	}
	return document
}

// The chart with its own values is statefulset.yaml, but for labels and the name of the image.
func TestHelmChartIsTheManifest(t *testing.T) {
	need(t, "helm")
	lint := exec.Command("helm", "lint", "--strict", "--kube-version", kubeVersion, "helm/pleach")
	if out, err := lint.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	chart, err := rendered(t)
	if err != nil {
		t.Fatal(err)
	}
	manifest := make(map[string]map[string]any)
	for _, d := range documents(t, "kubernetes/statefulset.yaml") {
		var part map[string]any
		if err := d.Decode(&part); err != nil {
			t.Fatal(err)
		}
		manifest[part["kind"].(string)] = part
	}
	pod := []any{"spec", "template", "spec"}
	container := slices.Clip(append(pod, "containers", 0))
	for _, c := range []struct {
		kind  string
		paths [][]any
	}{
		{"Service", [][]any{
			{"metadata", "name"}, {"spec", "clusterIP"}, {"spec", "publishNotReadyAddresses"}, {"spec", "ports"},
		}},
		{"PodDisruptionBudget", [][]any{{"metadata", "name"}, {"spec", "maxUnavailable"}}},
		{"NetworkPolicy", [][]any{{"spec", "policyTypes"}, {"spec", "ingress", 0, "ports"}, {"spec", "ingress", 1}}},
		{"StatefulSet", [][]any{
			{"metadata", "name"},
			{"spec", "serviceName"},
			{"spec", "replicas"},
			{"spec", "podManagementPolicy"},
			{"spec", "volumeClaimTemplates"},
			{"spec", "template", "metadata", "annotations"},
			append(pod, "automountServiceAccountToken"), append(pod, "terminationGracePeriodSeconds"),
			append(pod, "securityContext"), append(pod, "volumes"),
			append(container, "args"), append(container, "env"), append(container, "ports"),
			append(container, "livenessProbe"), append(container, "readinessProbe"), append(container, "securityContext"),
			append(container, "resources"), append(container, "volumeMounts"),
		}},
	} {
		for _, path := range c.paths {
			got, want := field(chart[c.kind], path...), field(manifest[c.kind], path...)
			if want == nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s %v is\n%v, want\n%v", c.kind, path, got, want)
			}
		}
	}
}

// An agent that does not use the API server has no account there.
func TestHelmAccount(t *testing.T) {
	need(t, "helm")
	for values, rules := range map[string]int{"": 0, "arbiter.lease=pair": 1, "seeds.endpointSlice=true": 1} {
		chart, err := rendered(t, values)
		if err != nil {
			t.Fatal(err)
		}
		all, _ := field(chart["Role"], "rules").([]any)
		for _, kind := range []string{"ServiceAccount", "Role", "RoleBinding"} {
			if (chart[kind] != nil) != (rules > 0) || len(all) != rules {
				t.Errorf("%q: %s is %v", values, kind, chart[kind])
			}
		}
		if has := chart["Lease"] != nil; has != strings.HasPrefix(values, "arbiter") {
			t.Errorf("%q: Lease is %v", values, chart["Lease"])
		}
	}
}

// Values change what they say.
func TestHelmValues(t *testing.T) {
	need(t, "helm")
	chart, err := rendered(t, "replicas=5", "tls.enabled=true", "tls.issuer.name=ca", "secret.name=",
		"metrics.podMonitor=true", "image.digest=sha256:"+strings.Repeat("0", 64),
		"settings.PLEACH_LOG_LEVEL=debug", "group=web", "spreadNodes=ScheduleAnyway", "arbiter.lease=pair",
		"seeds.endpointSlice=true")
	if err != nil {
		t.Fatal(err)
	}
	set := chart["StatefulSet"]
	spec := field(set, "spec", "template", "spec")
	env := make(map[any]any)
	for _, e := range field(spec, "containers", 0, "env").([]any) {
		env[field(e, "name")] = field(e, "value")
	}
	for what, c := range map[string]struct{ got, want any }{
		"replicas":   {field(set, "spec", "replicas"), 5},
		"budget":     {field(chart["PodDisruptionBudget"], "spec", "maxUnavailable"), 2},
		"spread":     {field(spec, "topologySpreadConstraints", 0, "whenUnsatisfiable"), "ScheduleAnyway"},
		"image":      {field(spec, "containers", 0, "image"), "pleach@sha256:" + strings.Repeat("0", 64)},
		"volumes":    {field(spec, "volumes", 1, "secret", "secretName"), "pleach-tls"},
		"variable":   {env["PLEACH_LOG_LEVEL"], "debug"},
		"group":      {env["PLEACH_GROUP"], "web"},
		"cert":       {env["PLEACH_TLS_CERT"], "/etc/pleach/tls/tls.crt"},
		"no secret":  {env["PLEACH_SECRET_FILE"], nil},
		"monitor":    {field(chart["PodMonitor"], "spec", "podMetricsEndpoints", 0, "port"), "metrics"},
		"issuer":     {field(chart["Certificate"], "spec", "issuerRef", "name"), "ca"},
		"arbiter":    {env["PLEACH_ARBITER"], "kubernetes:pair"},
		"lease":      {field(chart["Lease"], "metadata", "name"), "pair"},
		"kept":       {field(chart["Lease"], "metadata", "annotations", "helm.sh/resource-policy"), "keep"},
		"seeds":      {env["PLEACH_SEEDS"], "kubernetes:pleach:7000"},
		"account":    {field(spec, "serviceAccountName"), "pleach"},
		"no token":   {field(spec, "automountServiceAccountToken"), false},
		"token":      {field(spec, "volumes", 2, "projected", "sources", 0, "serviceAccountToken", "path"), "token"},
		"fifth name": {field(chart["Certificate"], "spec", "uris", 4), "spiffe://cluster.local/pleach/web/pleach-4"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
	for values, about := range map[string]string{
		"secret.name=":       "set secret.name or tls.enabled",
		"replica=3":          "replica",
		"spreadNodes=Never":  "spreadNodes",
		"arbiter.lease=a/b":  "lease",
		"seeds.endpoint=yes": "endpoint",
		"settings.Debug=yes": "Debug",
	} {
		if _, err := rendered(t, values); err == nil || !strings.Contains(err.Error(), about) {
			t.Errorf("%s: %v", values, err)
		}
	}
}
