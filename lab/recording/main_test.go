package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

const pictures = "../../docs/pictures/"

// The picture of the README is drawn from its recording.
func TestDemoIsDrawnFromItsRecording(t *testing.T) {
	cast, err := os.ReadFile(pictures + "demo.cast")
	if err != nil {
		t.Fatal(err)
	}
	got, err := draw(cast)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(pictures + "demo.svg")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/pictures/demo.svg is stale: go run ./lab/recording draw docs/pictures/demo.cast docs/pictures/demo.svg")
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(got), "\n") { // the commands are those of the README
		if _, command, ok := strings.Cut(line, ">$ "); ok {
			command = strings.TrimSuffix(command, "</text>")
			if !strings.Contains(string(readme), "$ "+command+"\n") {
				t.Errorf("the README does not have the command %q", command)
			}
		}
	}
}

// A recording has what commands print, and its picture is well formed and shows each line.
func TestRecordAndDraw(t *testing.T) {
	file := t.TempDir() + "/a.cast"
	if err := record(file, []string{"echo '<a>'; echo b >&2", "echo pleach: success"}); err != nil {
		t.Fatal(err)
	}
	cast, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	svg, err := draw(cast)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{
		">&lt;a&gt;<", ">b<", ` good" `, "prefers-color-scheme: dark",
		"prefers-reduced-motion",
	} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("%q is not in %s", want, svg)
		}
	}
	if err := record(file, []string{"exit 3"}); err == nil {
		t.Error("a command that fails is recorded")
	}
}
