package deploy

import (
	"bytes"
	"os/exec"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Prometheus accepts the alert rules, and they fire when they should and at no other time.
func TestAlertRules(t *testing.T) {
	need(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "rules.yml"}, {"test", "rules", "rules_test.yml"}} {
		cmd := exec.Command("promtool", args...)
		cmd.Dir = "prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// Every alert is explained, tested and on the page.
func TestAlertsAreExplained(t *testing.T) {
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr         string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(read(t, "prometheus/rules.yml"), &rules); err != nil {
		t.Fatal(err)
	}
	var tests struct {
		Tests []struct {
			Alerts []struct {
				Name     string `yaml:"alertname"`
				Expected []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal(read(t, "prometheus/rules_test.yml"), &tests); err != nil {
		t.Fatal(err)
	}
	fires := make(map[string]bool)
	for _, test := range tests.Tests {
		for _, a := range test.Alerts {
			fires[a.Name] = fires[a.Name] || len(a.Expected) > 0
		}
	}
	page, alerts := read(t, "../docs/operate/monitor.md"), 0
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			alerts++
			if r.Expr == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" ||
				r.Annotations["description"] == "" {
				t.Errorf("%s lacks an expression, a severity, a summary or a description", r.Alert)
			}
			if !fires[r.Alert] {
				t.Errorf("rules_test.yml has no case in which %s fires", r.Alert)
			}
			if !bytes.Contains(page, []byte("| `"+r.Alert+"` |")) {
				t.Errorf("docs/operate/monitor.md has no row of %s", r.Alert)
			}
		}
	}
	if alerts < 10 || bytes.Count(page, []byte("| `Pleach")) != alerts {
		t.Errorf("%d alerts, and %d rows in docs/operate/monitor.md", alerts, bytes.Count(page, []byte("| `Pleach")))
	}
}
