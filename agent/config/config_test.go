package config

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const whole = `
group: web
listen: 10.0.0.1:7000
seeds: ["10.0.0.1:7000", dns:web.internal:7000, "exec:peers a,b"]
expect: 3
tags: {role: front, zone: b}
retain-messages: 10
handlers:
  - on: deploy
    run: ./deploy
    timeout: 1m
    concurrency: 2
  - {query: load, run: [cat, /proc/loadavg]}
`

// A flag counts before the environment, which counts before the file.
func TestLoad(t *testing.T) {
	c, err := Load(write(t, whole), []string{
		"PLEACH_GROUP=env", "PLEACH_LISTEN=10.0.0.2:1", "PLEACH_TAGS=role=back, x=1",
		"OTHER=1",
	},
		map[string]string{"listen": "10.0.0.3:1", "expect": "5"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Group != "env" || c.Listen != "10.0.0.3:1" || c.Expect != 5 || c.RetainMessages != 10 || c.RetainBytes == 0 ||
		c.Socket == "" {
		t.Errorf("got %+v", c)
	}
	if len(c.Seeds) != 3 || c.Seeds[2] != "exec:peers a,b" {
		t.Errorf("seeds %q", c.Seeds)
	}
	if meta, err := c.Meta("v1"); err != nil || meta != "pleach=v1 role=back x=1" || Tags(meta)["x"] != "1" {
		t.Errorf("meta %q, %v", meta, err)
	}
	deploy, load := c.Handlers[0], c.Handlers[1]
	if deploy.Run.String() != "./deploy" || deploy.Timeout != time.Minute || deploy.Concurrency != 2 {
		t.Errorf("got %+v", deploy)
	}
	if load.Query != "load" || load.Timeout != defaultTimeout || load.Concurrency != 1 {
		t.Errorf("got %+v", load)
	}
}

// Every setting but the handlers has a flag and a variable.
func TestNames(t *testing.T) {
	names := Names()
	for _, name := range []string{"group", "data-dir", "seeds", "tls-ca", "socket", "token-file"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is missing in %v", name, names)
		}
	}
	if slices.Contains(names, "handlers") || Variable("data-dir") != "PLEACH_DATA_DIR" {
		t.Error("handlers are in the file only")
	}
}

func TestLoadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"grup: web":                                    "grup",
		"seeds: [here]":                                "is not a seed",
		"tls-ca: ca.pem":                               "belong together",
		"expect: -1":                                   "expect is -1",
		"api: 127.0.0.1:1":                             "needs a token-file",
		"token-file: x":                                "no effect",
		"{api: '0.0.0.0:1', token-file: x}":            "only a loopback address",
		"{api: 'x', token-file: x}":                    "write host:port",
		"tags: {a b: c}":                               "no spaces",
		"handlers: [{run: x}]":                         "number 1: write on",
		"handlers: [{on: a, query: b, run: x}]":        "number 1: write on",
		"handlers: [{on: a}]":                          "write run",
		"handlers: [{on: a, run: x, timeout: -1s}]":    "timeout is",
		"handlers: [{on: a, run: x, concurrency: -1}]": "concurrency is",
	} {
		if _, err := Load(write(t, text), nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	for setting, want := range map[string]string{
		"expect":   "--expect: \"x\" is not a number",
		"observer": "--observer: \"x\" is neither true nor false",
		"tags":     "--tags: \"x\" is not a tag",
	} {
		if _, err := Load("", nil, map[string]string{setting: "x"}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v", setting, err)
		}
	}
	if _, err := Load("none.yaml", nil, nil); err == nil {
		t.Error("a file that is not there")
	}
}

// The data directory keeps the name, and the token file its token.
func TestKept(t *testing.T) {
	dir := t.TempDir()
	c := &Config{DataDir: filepath.Join(dir, "data"), TokenFile: filepath.Join(dir, "token")}
	first, err := c.GroupConfig("")
	if err != nil || first.ID == "" {
		t.Fatalf("%q, %v", first.ID, err)
	}
	if again, err := c.GroupConfig(""); err != nil || again.ID != first.ID {
		t.Errorf("%q, then %q, %v", first.ID, again.ID, err)
	}
	token, err := c.Token()
	if err != nil || len(token) < 20 {
		t.Fatalf("%q, %v", token, err)
	}
	if again, err := c.Token(); err != nil || again != token {
		t.Errorf("%q, then %q, %v", token, again, err)
	}
	if info, err := os.Stat(c.TokenFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// A file and flags say the same of a fleet. The seeds of the own zone are those of the group.
func TestFleetSettings(t *testing.T) {
	byFile, err := Load(write(t,
		"group: shop\nzone: fra\nzones: {fra: [\"h:1\"], iad: [\"i:1\", \"i:2\"]}\npatience: 5s\nbackbone-listen: \":7001\"\n"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	byFlags, err := Load("", []string{"PLEACH_GROUP=shop", "PLEACH_ZONE=fra"},
		map[string]string{"zones": "fra=h:1,iad=i:1,iad=i:2", "patience": "5s", "backbone-listen": ":7001"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Config{byFile, byFlags} {
		if c.GroupName() != "shop/fra" || !slices.Equal(c.Seeds, []string{"h:1"}) ||
			!slices.Equal(c.Zones["iad"], []string{"i:1", "i:2"}) || c.Patience != 5*time.Second || c.BackboneListen != ":7001" {
			t.Errorf("%+v", c)
		}
	}
	for text, want := range map[string]string{
		"patience: 5s": "no effect without zone", "zone: a/b": "not the name of a zone",
		"zone: a\nzones: {b: [c]}": "is not a seed",
		"metrics-listen: x":        "write host:port", "metrics-tls-cert: x": "belong together",
		"handlers: [{event: member-fail, run: x}]":        "write one of member-join",
		"handlers: [{event: member-join, on: x, run: x}]": "write on: TOPIC",
	} {
		if _, err := Load(write(t, text), nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Each setting has an effect as a flag, whatever its type.
func TestSettingsAreSet(t *testing.T) {
	texts := map[string]string{"bool": "true", "int": "7", "time.Duration": "7s", "map[string]string": "a=b"}
	for _, s := range new(Config).settings() {
		text := cmp.Or(texts[s.value.Type().String()], "a=b")
		if err := s.set(text); err != nil || s.value.IsZero() {
			t.Errorf("%s = %s: %v, %v", s.name, text, s.value, err)
		}
	}
}
