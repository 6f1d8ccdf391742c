package gate_test

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/pleach-go/pleach/agent/gate"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		gate string
		want gate.Threshold
	}{
		{"metric pleach_keys_bytes < 1e6", gate.Threshold{"pleach_keys_bytes", "<", 1e6}},
		{"metric  a:b_2>=-0.5", gate.Threshold{"a:b_2", ">=", -0.5}},
		{"metric up == +1", gate.Threshold{"up", "==", 1}},
		{"metric up !=0", gate.Threshold{"up", "!=", 0}},
	} {
		if got, err := gate.Parse(c.gate); err != nil || got != c.want {
			t.Errorf("%s: %v, %v", c.gate, got, err)
		}
	}
	for _, malformed := range []string{
		"", "ready", "metric", "metric ", "metric a", "metric a <", "metric a < b", "metric a = 1", "metric a <> 1",
		"metric a < 1 2", "metric a < 1 ", " metric a < 1", "metric 1a < 1", "metric a{b=\"c\"} < 1", "metric a < inf",
		"metric a < NaN", "metric a < 0x10", "metric a < 1_000", "metric a < 1e999", "metric a < 1.", "metric a < .5",
		"metric a\n< 1", "metric a < 1\n", "metric a < 1; reboot", "metrics a < 1",
	} {
		var syntax *gate.SyntaxError
		if got, err := gate.Parse(malformed); !errors.As(err, &syntax) || syntax.Gate != malformed {
			t.Errorf("%q: %v, %v", malformed, got, err)
		}
	}
}

// Every gate that is parsed is one condition with a finite number, and is parsed again as the same.
func FuzzParse(f *testing.F) {
	f.Add("metric pleach_keys_bytes < 1e6")
	f.Add("metric a>=-0.5")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := gate.Parse(s)
		if err != nil {
			return
		}
		if !gate.IsThreshold(s) || math.IsInf(got.Bound, 0) || math.IsNaN(got.Bound) {
			t.Errorf("%q: %+v", s, got)
		}
		if again, err := gate.Parse(got.String()); err != nil || again != got {
			t.Errorf("%q: %+v, then %+v, %v", s, got, again, err)
		}
	})
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		gate string
		want error
	}{
		{"metric load < 2", nil},
		{"metric load <= 1.5", nil},
		{"metric load > 1", nil},
		{"metric load >= 1.5", nil},
		{"metric load == 1.5", nil},
		{"metric load != 1", nil},
		{"metric load < 1.5", &gate.FailedError{gate.Threshold{"load", "<", 1.5}, "", 1.5}},
		{"metric load > 1.5", &gate.FailedError{gate.Threshold{"load", ">", 1.5}, "", 1.5}},
		{"metric load <= 1", &gate.FailedError{gate.Threshold{"load", "<=", 1}, "", 1.5}},
		{"metric load >= 2", &gate.FailedError{gate.Threshold{"load", ">=", 2}, "", 1.5}},
		{"metric load == 1", &gate.FailedError{gate.Threshold{"load", "==", 1}, "", 1.5}},
		{"metric load != 1.5", &gate.FailedError{gate.Threshold{"load", "!=", 1.5}, "", 1.5}},
		{"metric done_total < 4", nil},
		{"metric done_total < 3", &gate.FailedError{gate.Threshold{"done_total", "<", 3}, "", 3}},
		{"metric warning < 2", nil},
		{"metric warning < 1", &gate.FailedError{gate.Threshold{"warning", "<", 1}, `{kind="disk"}`, 1}},
		{"metric loads < 2", &gate.UnknownMetricError{"loads"}},
		{"metric unused < 2", &gate.UnknownMetricError{"unused"}},
		{"metric took < 2", &gate.ValueError{"took", "a histogram"}},
		{"metric unknown != 2", &gate.ValueError{"unknown", "not a number"}},
	} {
		threshold, err := gate.Parse(c.gate)
		if err != nil {
			t.Fatal(err)
		}
		if err := threshold.Check(metrics(t)); !reflect.DeepEqual(err, c.want) {
			t.Errorf("%s: %v, want %v", c.gate, err, c.want)
		}
	}
}

// metrics are some of each kind.
func metrics(t *testing.T) []*dto.MetricFamily {
	t.Helper()
	load := prometheus.NewGauge(prometheus.GaugeOpts{Name: "load"})
	load.Set(1.5)
	done := prometheus.NewCounter(prometheus.CounterOpts{Name: "done_total"})
	done.Add(3)
	warning := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "warning"}, []string{"kind"})
	warning.WithLabelValues("certificate").Set(0)
	warning.WithLabelValues("disk").Set(1)
	unknown := prometheus.NewGauge(prometheus.GaugeOpts{Name: "unknown"})
	unknown.Set(math.NaN())
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(load, done, warning, unknown, prometheus.NewHistogram(prometheus.HistogramOpts{Name: "took"}),
		prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "unused"}, []string{"kind"}))
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}
