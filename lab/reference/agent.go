package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// described is the part of the description of the HTTP API that the page shows.
type described struct {
	Info       struct{ Title, Description string }
	Paths      yaml.Node
	Components struct {
		Parameters map[string]parameter
		Responses  map[string]struct{ Description string }
		Schemas    map[string]schema
	}
}

type operation struct {
	Right       string `yaml:"x-right"`
	Summary     string
	Description string
	Parameters  []parameter
	Responses   map[string]struct {
		Ref         string `yaml:"$ref"`
		Description string
		Content     map[string]struct{ Schema schema }
	}
}

type parameter struct {
	Ref         string `yaml:"$ref"`
	Name, In    string
	Required    bool
	Schema      schema
	Description string
}

type schema struct {
	Ref         string `yaml:"$ref"`
	Type        any
	Default     any
	Enum        []any
	Description string
	Properties  map[string]schema
	Items       *schema
	OneOf       []schema `yaml:"oneOf"`
	AllOf       []schema `yaml:"allOf"`
}

// agentPage is the reference of the HTTP API of agents.
func agentPage(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "agent/api/openapi.yaml"))
	if err != nil {
		return "", err
	}
	var d described
	if err := yaml.Unmarshal(text, &d); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# HTTP API of agents\n\n%s\nAgents serve the description of this page at `GET /v1/openapi.yaml` ([source](https://%s/blob/main/agent/api/openapi.yaml)).\n\n", escape(d.Info.Description), module)
	for i := 0; i+1 < len(d.Paths.Content); i += 2 {
		var methods map[string]operation
		if err := d.Paths.Content[i+1].Decode(&methods); err != nil {
			return "", err
		}
		for _, method := range []string{"get", "post", "put", "delete"} {
			if o, ok := methods[method]; ok {
				d.operation(&b, strings.ToUpper(method)+" "+d.Paths.Content[i].Value, &o)
			}
		}
	}
	b.WriteString("## Errors\n\nEvery other reply is an error: ")
	fmt.Fprintf(&b, "%s\n\n## Types\n\n", escape(oneLine(d.Components.Responses["error"].Description)))
	for _, name := range sorted(d.Components.Schemas) {
		d.schema(&b, name)
	}
	return b.String(), nil
}

func (d *described) operation(b *strings.Builder, title string, o *operation) {
	fmt.Fprintf(b, "## `%s`\n\n%s.", title, escape(o.Summary))
	if o.Right != "" {
		fmt.Fprintf(b, " Right: `%s`.", o.Right)
	}
	fmt.Fprintf(b, "\n\n%s\n\n", escape(strings.TrimSpace(o.Description)))
	if len(o.Parameters) > 0 {
		b.WriteString("| parameter | in | type | |\n|---|---|---|---|\n")
	}
	for _, p := range o.Parameters {
		if p.Ref != "" {
			p = d.Components.Parameters[path.Base(p.Ref)]
		}
		name := "`" + p.Name + "`"
		if p.Required {
			name += ", required"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, p.In, p.Schema.String(), escape(oneLine(p.Description)))
	}
	for _, status := range sorted(o.Responses) {
		r := o.Responses[status]
		if r.Ref != "" {
			continue // an error
		}
		fmt.Fprintf(b, "\n%s: %s", status, escape(r.Description))
		for _, kind := range sorted(r.Content) {
			fmt.Fprintf(b, " (`%s` %s)", kind, r.Content[kind].Schema.String())
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

func (d *described) schema(b *strings.Builder, name string) {
	s := d.Components.Schemas[name]
	fmt.Fprintf(b, "### %s\n\n%s\n\n", name, escape(oneLine(s.Description)))
	properties := s.Properties
	for _, part := range s.AllOf {
		if part.Ref != "" {
			fmt.Fprintf(b, "All fields of %s, and:\n\n", part.String())
		} else if properties == nil {
			properties = part.Properties
		}
	}
	if len(properties) == 0 {
		return
	}
	b.WriteString("| field | type | |\n|---|---|---|\n")
	for _, field := range sorted(properties) {
		p := properties[field]
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", field, p.String(), escape(oneLine(p.Description)))
	}
	b.WriteString("\n")
}

// String is the type of a schema in words.
func (s schema) String() string {
	var text string
	switch {
	case s.Ref != "":
		name := path.Base(s.Ref)
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
	case len(s.OneOf) > 0:
		var parts []string
		for i := range s.OneOf {
			parts = append(parts, s.OneOf[i].String())
		}
		return strings.Join(parts, " or ")
	case s.Items != nil:
		return "list of " + s.Items.String()
	case len(s.Enum) > 0:
		text = strings.Trim(fmt.Sprint(s.Enum), "[]")
	case s.Type != nil:
		text = strings.Trim(fmt.Sprint(s.Type), "[]")
	}
	if s.Default != nil {
		text += fmt.Sprintf(", default %v", s.Default)
	}
	return escape(text)
}

func sorted[T any](m map[string]T) (keys []string) {
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
