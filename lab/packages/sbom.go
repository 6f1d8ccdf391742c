package main

import (
	"debug/buildinfo"
	"encoding/json"
	"runtime/debug"
	"strings"
)

// The software bill of materials is in the format CycloneDX 1.5, of which these are the
// parts that the Go command records in a binary.
type (
	bom struct {
		Format     string      `json:"bomFormat"`
		Spec       string      `json:"specVersion"`
		Version    int         `json:"version"`
		Metadata   metadata    `json:"metadata"`
		Components []component `json:"components"`
	}
	metadata struct {
		Component component `json:"component"`
	}
	component struct {
		Type    string `json:"type"`
		Ref     string `json:"bom-ref"`
		Name    string `json:"name"`
		Version string `json:"version"`
		URL     string `json:"purl"`
	}
)

// modules lists the modules that are in a binary, and Go's library.
func modules(binary, version string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	list := bom{
		Format: "CycloneDX", Spec: "1.5", Version: 1,
		Metadata:   metadata{newComponent("application", info.Main.Path, version)},
		Components: []component{newComponent("library", "std", strings.TrimPrefix(info.GoVersion, "go"))},
	}
	for _, m := range info.Deps {
		list.Components = append(list.Components, moduleComponent(m))
	}
	text, err := json.MarshalIndent(list, "", "  ")
	return append(text, '\n'), err
}

func moduleComponent(m *debug.Module) component {
	if m.Replace != nil {
		m = m.Replace
	}
	return newComponent("library", m.Path, m.Version)
}

func newComponent(kind, name, version string) component {
	url := "pkg:golang/" + name + "@" + version
	return component{Type: kind, Ref: url, Name: name, Version: version, URL: url}
}
