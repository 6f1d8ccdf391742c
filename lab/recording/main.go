// Recording records the lines that commands print, with their times, and draws them as an animated
// picture of a terminal, for pages:
//
//	go run ./lab/recording record docs/pictures/demo.cast COMMAND...
//	go run ./lab/recording draw docs/pictures/demo.cast docs/pictures/demo.svg
//
// A recording is in asciinema's format (asciicast v2). Each command is run by bash, in the current
// directory.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"strings"
	"time"
	"unicode/utf8"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) > 2 && args[0] == "record":
		return record(args[1], args[2:])
	case len(args) == 3 && args[0] == "draw":
		cast, err := os.ReadFile(args[1])
		if err != nil {
			return err
		}
		svg, err := draw(cast)
		if err != nil {
			return err
		}
		return os.WriteFile(args[2], svg, 0o644)
	}
	return errors.New("write record CAST COMMAND..., or draw CAST SVG")
}

// header is the first line of a recording.
type header struct {
	Version int    `json:"version"`
	Width   int    `json:"width"`
	Height  int    `json:"height"`
	Title   string `json:"title"`
}

// pause is the time before a command, in which a reader types it.
const pause = 0.6

// record runs commands and writes their lines with the seconds since the first began.
func record(file string, commands []string) error {
	var out bytes.Buffer
	at, width, height := 0.0, 0, 0
	write := func(at float64, line string) error {
		width, height = max(width, utf8.RuneCountInString(line)), height+1
		b, err := json.Marshal([]any{float64(int(at*1000)) / 1000, "o", line + "\r\n"})
		_, _ = out.Write(append(b, '\n'))
		return err
	}
	for _, command := range commands {
		at += pause
		if err := write(at, "$ "+command); err != nil {
			return err
		}
		cmd := exec.Command("bash", "-c", "exec 2>&1\n"+command)
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		began := time.Now()
		if err := cmd.Start(); err != nil {
			return err
		}
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			if err := write(at+time.Since(began).Seconds(), lines.Text()); err != nil {
				return err
			}
		}
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
		at += time.Since(began).Seconds()
	}
	first, err := json.Marshal(header{Version: 2, Width: width, Height: height, Title: strings.Join(commands, "; ")})
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(append(first, '\n'), out.Bytes()...), 0o644)
}

// Sizes of the picture in pixels, and the seconds that the last line stays.
const (
	charWidth  = 8.05
	lineHeight = 20
	margin     = 18
	titleBar   = 30
	hold       = 4.0
)

const style = `svg { --card: #f8fafc; --line: #d5dde6; --ink: #1e293b; --soft: #64748b; --good: #0d9488; --bad: #dc2626 }
@media (prefers-color-scheme: dark) {
svg { --card: #10161e; --line: #37414d; --ink: #e6edf3; --soft: #8b98a7; --good: #2dd4bf; --bad: #f87171 }
}
rect { fill: var(--card); stroke: var(--line) }
circle { fill: var(--line) }
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: var(--ink); white-space: pre }
.command { font-weight: 600 } .good { fill: var(--good) } .bad { fill: var(--bad) }
`

// draw draws a recording: each line appears at its time, and all of it begins again after a while.
// Readers who prefer less motion see all lines at once.
func draw(cast []byte) ([]byte, error) {
	lines := bytes.Split(bytes.TrimSpace(cast), []byte("\n"))
	var h header
	if err := json.Unmarshal(lines[0], &h); err != nil {
		return nil, err
	}
	if h.Version != 2 {
		return nil, fmt.Errorf("the recording is of version %d, not 2", h.Version)
	}
	type line struct {
		at   float64
		text string
	}
	var printed []line
	for _, l := range lines[1:] {
		var event []any
		if err := json.Unmarshal(l, &event); err != nil {
			return nil, err
		}
		if len(event) != 3 {
			return nil, fmt.Errorf("%s is not an event", l)
		}
		at, isNumber := event[0].(float64)
		text, isText := event[2].(string)
		if !isNumber || !isText {
			return nil, fmt.Errorf("%s is not an event", l)
		}
		printed = append(printed, line{at, strings.TrimRight(text, "\r\n")})
	}
	if len(printed) == 0 {
		return nil, errors.New("the recording is empty")
	}
	total := printed[len(printed)-1].at + hold
	width := int(float64(h.Width)*charWidth) + 2*margin
	height := titleBar + len(printed)*lineHeight + margin
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" aria-labelledby="t">`+"\n", width, height)
	fmt.Fprintf(&b, "<title id=\"t\">A terminal: %s</title>\n<style>\n%s", html.EscapeString(h.Title), style)
	b.WriteString("@media (prefers-reduced-motion: no-preference) {\n")
	for i, l := range printed {
		if i == 0 {
			continue // it stays
		}
		fmt.Fprintf(&b, "@keyframes l%d { 0%%, %.2f%% { opacity: 0 } %.2f%%, 100%% { opacity: 1 } }\n", i, 100*l.at/total,
			100*l.at/total+0.01)
		fmt.Fprintf(&b, ".l%d { animation: l%d %.1fs linear infinite }\n", i, i, total)
	}
	b.WriteString("}\n</style>\n")
	fmt.Fprintf(&b, `<rect x="0.5" y="0.5" width="%d" height="%d" rx="8"/>`+"\n", width-1, height-1)
	for i := range 3 {
		fmt.Fprintf(&b, `<circle cx="%d" cy="16" r="5"/>`+"\n", margin+2+i*16)
	}
	for i, l := range printed {
		fmt.Fprintf(&b, `<text class="l%d%s" x="%d" y="%d">%s</text>`+"\n", i, class(l.text), margin,
			titleBar+(i+1)*lineHeight-5, html.EscapeString(l.text))
	}
	b.WriteString("</svg>\n")
	return b.Bytes(), nil
}

// class is the style of a line: commands, the death of a process, and success.
func class(text string) string {
	switch {
	case strings.HasPrefix(text, "$ "):
		return " command"
	case strings.HasPrefix(text, "pleach: success"):
		return " good"
	case strings.HasPrefix(text, "pleach: kill"):
		return " bad"
	}
	return ""
}
