package api

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// description is openapi.yaml as far as tests look at it.
type description struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]*schema }
}

type operation struct {
	Right     string `yaml:"x-right"`
	Responses map[string]struct {
		Content map[string]struct{ Schema schema }
	}
}

// schema is a subset of JSON Schema.
type schema struct {
	Ref        string `yaml:"$ref"`
	Type       string
	Required   []string
	Properties map[string]*schema
	Items      *schema
	Enum       []any
	OneOf      []schema `yaml:"oneOf"`
}

func readDescription(t *testing.T) *description {
	t.Helper()
	d := &description{}
	if err := yaml.Unmarshal(openAPI, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// check says in what a value differs from a schema. A field that the schema does not have is
// a difference, too: it would be undocumented.
func (d *description) check(s *schema, path string, value any) (complaints []string) {
	if s.Ref != "" {
		s = d.Components.Schemas[s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]]
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				complaints = append(complaints, fmt.Sprintf("%s.%s is missing", path, name))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if s.Properties[name] == nil {
				complaints = append(complaints, fmt.Sprintf("%s.%s is not described", path, name))
				continue
			}
			complaints = append(complaints, d.check(s.Properties[name], path+"."+name, v[name])...)
		}
		return complaints
	case []any:
		for i, item := range v {
			if s.Items == nil {
				return []string{path + " is not described as a list"}
			}
			complaints = append(complaints, d.check(s.Items, fmt.Sprintf("%s[%d]", path, i), item)...)
		}
		return complaints
	}
	if want := map[bool]string{true: s.Type, false: "enum"}[len(s.Enum) == 0]; !isA(value, want, s.Enum) {
		complaints = append(complaints, fmt.Sprintf("%s is %v, not of type %s %v", path, value, want, s.Enum))
	}
	return complaints
}

func isA(value any, kind string, values []any) bool {
	switch v := value.(type) {
	case string:
		return kind == "string" || kind == "enum" && slices.Contains(values, value)
	case bool:
		return kind == "boolean"
	case float64:
		return kind == "number" || kind == "integer" && v == float64(int64(v))
	}
	return false
}

// The routes are those of the description, and the other way around, with the right that each needs.
func TestRoutesAreDescribed(t *testing.T) {
	var served, described []string
	for _, r := range routes {
		if r.right == 0 || r.kind == 0 {
			t.Errorf("%s %s has no right, or no kind", r.method, r.path)
		}
		served = append(served, fmt.Sprint(strings.ToLower(r.method), " ", strings.Replace(r.path, "...}", "}", 1), " ",
			r.right))
	}
	for path, operations := range readDescription(t).Paths {
		for method, o := range operations {
			described = append(described, fmt.Sprint(method, " ", path, " ", o.Right))
		}
	}
	slices.Sort(served)
	slices.Sort(described)
	if !slices.Equal(served, described) {
		t.Errorf("served: %v\ndescribed: %v", served, described)
	}
}

// A check that cannot fail is worth nothing.
func TestCheckComplains(t *testing.T) {
	d := readDescription(t)
	ref := &schema{Ref: "#/components/schemas/Receipt"}
	member := map[string]any{"rank": 1.0, "id": "a"}
	for _, c := range []struct {
		value any
		want  string
	}{
		{map[string]any{"view": 1.0, "stable": true, "members": []any{member}}, ""},
		{map[string]any{"view": 1.0, "stable": true}, ".members is missing"},
		{map[string]any{"view": 1.5, "stable": true, "members": []any{}}, ".view is 1.5, not of type integer []"},
		{map[string]any{"view": 1.0, "stable": true, "members": []any{}, "x": 1.0}, ".x is not described"},
		{
			map[string]any{"view": 1.0, "stable": true, "members": []any{map[string]any{"rank": 1.0}}},
			".members[0].id is missing",
		},
	} {
		if got := strings.Join(d.check(ref, "", c.value), "; "); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// One page of the guide has all routes.
func TestPageHasAllRoutes(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routes {
		path, _, _ := strings.Cut(r.path, "{")
		if !strings.Contains(string(page), path) {
			t.Errorf("%s %s is not in docs/guide/agents.md", r.method, r.path)
		}
	}
}
