package testutil

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The commands of a page are tried as they are printed there.

// CodeBlock is a block of a page.
type CodeBlock struct{ Language, Text string }

// CodeBlocks returns the blocks below a heading of a page, up to the next section.
func CodeBlocks(t *testing.T, file, heading string) (blocks []CodeBlock) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(b), "# "+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %q", file, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for i, part := range strings.Split(section, "\n```") {
		if i%2 == 1 {
			language, text, _ := strings.Cut(part, "\n")
			blocks = append(blocks, CodeBlock{language, text})
		}
	}
	return blocks
}

// PrintedCommand is a command of a console block, and the lines printed below it.
type PrintedCommand struct{ Line, Output string }

// Commands returns the commands of a console block.
func (b CodeBlock) Commands() (commands []PrintedCommand) {
	for line := range strings.Lines(b.Text + "\n") {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			commands = append(commands, PrintedCommand{Line: strings.TrimSpace(command)})
		} else if n := len(commands); n > 0 {
			commands[n-1].Output += line
		}
	}
	return commands
}

var numbers = regexp.MustCompile(`\d+`)

// Says reports whether a command has printed what the page says that it prints. Numbers, as
// that of a view, may differ.
func (c PrintedCommand) Says(got string) bool {
	return strings.Contains(numbers.ReplaceAllString(got, "N"), numbers.ReplaceAllString(c.Output, "N"))
}

// ShellBlock is a block of shell commands of a page: the number Index of those below its heading.
type ShellBlock struct {
	CodeBlock
	Heading string
	Index   int
}

// ShellBlocks returns all blocks of a page that a reader may paste into a shell.
func ShellBlocks(t *testing.T, file string) (blocks []ShellBlock) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	heading, index := "", 0
	for i, part := range strings.Split("\n"+string(b), "\n```") {
		if i%2 == 1 {
			language, text, _ := strings.Cut(part, "\n")
			if language == "console" || language == "sh" {
				blocks = append(blocks, ShellBlock{CodeBlock{language, text}, heading, index})
				index++
			}
			continue
		}
		for line := range strings.Lines(part) {
			if title := strings.TrimLeft(line, "#"); title != line && strings.HasPrefix(title, " ") {
				heading, index = strings.TrimSpace(title), 0
			}
		}
	}
	return blocks
}

// left stands in a page for output that is left out.
var left = regexp.MustCompile(`\s*…\s*`)

// Lacks returns the first line that the page says a command prints, and it has not printed. Numbers
// may differ, and so may the order of lines.
func (c PrintedCommand) Lacks(got string) (line string, lacks bool) {
	got = numbers.ReplaceAllString(got, "N")
	for line := range strings.Lines(c.Output) {
		for _, part := range left.Split(strings.TrimSpace(line), -1) {
			if !strings.Contains(got, numbers.ReplaceAllString(part, "N")) {
				return line, true
			}
		}
	}
	return "", false
}
