// Package gate has the gates of rollouts that compare a metric of an agent with a number:
//
//	metric pleach_agent_keys_bytes < 1e6
//
// Each agent evaluates them by its own metrics. A gate that cannot be evaluated fails.
package gate

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// prefix tells these gates from the names of queries.
const prefix = "metric "

// IsThreshold reports whether a gate is a [Threshold], though it may be malformed.
func IsThreshold(gate string) bool { return strings.HasPrefix(gate, prefix) }

// Threshold is a condition that all series of a metric have to meet.
type Threshold struct {
	Metric   string
	Operator string // one of < <= > >= == !=
	Bound    float64
}

// SyntaxError is returned by [Parse].
type SyntaxError struct{ Gate string }

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("gate %q: write metric NAME OPERATOR NUMBER, with one of < <= > >= == !=", e.Gate)
}

// UnknownMetricError is returned by [Threshold.Check] if the agent does not have the metric.
type UnknownMetricError struct{ Metric string }

func (e *UnknownMetricError) Error() string { return fmt.Sprintf("there is no metric %s", e.Metric) }

// ValueError is returned by [Threshold.Check] if a metric is not a number.
type ValueError struct {
	Metric string
	Is     string // what it is
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("metric %s is %s, and cannot be compared", e.Metric, e.Is)
}

// FailedError is returned by [Threshold.Check] if a series does not meet the condition.
type FailedError struct {
	Threshold
	Labels string
	Value  float64
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("%s%s is %v, not %s %v", e.Metric, e.Labels, e.Value, e.Operator, e.Bound)
}

var threshold = regexp.MustCompile(
	`^metric +([a-zA-Z_:][a-zA-Z0-9_:]*) *(<=|>=|==|!=|<|>) *([+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)$`)

// Parse parses a gate. The error is a [*SyntaxError].
func Parse(gate string) (Threshold, error) {
	parts := threshold.FindStringSubmatch(gate)
	if parts == nil {
		return Threshold{}, &SyntaxError{gate}
	}
	bound, err := strconv.ParseFloat(parts[3], 64)
	if err != nil { // out of range
		return Threshold{}, &SyntaxError{gate}
	}
	return Threshold{parts[1], parts[2], bound}, nil
}

// String returns the gate that Parse parses.
func (t Threshold) String() string {
	return fmt.Sprintf("%s%s %s %v", prefix, t.Metric, t.Operator, t.Bound)
}

// Check returns nil if all series of the metric meet the condition, and there is one.
func (t Threshold) Check(families []*dto.MetricFamily) error {
	for _, f := range families {
		if f.GetName() != t.Metric {
			continue
		}
		for _, m := range f.GetMetric() {
			if err := t.check(f.GetType(), m); err != nil {
				return err
			}
		}
		return nil // a family has one series at least
	}
	return &UnknownMetricError{t.Metric}
}

func (t Threshold) check(kind dto.MetricType, m *dto.Metric) error {
	var value float64
	switch kind {
	case dto.MetricType_COUNTER:
		value = m.GetCounter().GetValue()
	case dto.MetricType_GAUGE:
		value = m.GetGauge().GetValue()
	case dto.MetricType_UNTYPED:
		value = m.GetUntyped().GetValue()
	default:
		return &ValueError{t.Metric, "a " + strings.ToLower(kind.String())}
	}
	switch {
	case math.IsNaN(value):
		return &ValueError{t.Metric, "not a number"}
	case t.holds(value):
		return nil
	}
	return &FailedError{t, labels(m), value}
}

func (t Threshold) holds(value float64) bool {
	switch t.Operator {
	case "<":
		return value < t.Bound
	case "<=":
		return value <= t.Bound
	case ">":
		return value > t.Bound
	case ">=":
		return value >= t.Bound
	case "==":
		return value == t.Bound
	case "!=":
		return value != t.Bound
	}
	return false
}

// labels returns the labels of a series as Prometheus writes them.
func labels(m *dto.Metric) string {
	var list []string
	for _, l := range m.GetLabel() {
		list = append(list, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	if list == nil {
		return ""
	}
	return "{" + strings.Join(list, ",") + "}"
}
