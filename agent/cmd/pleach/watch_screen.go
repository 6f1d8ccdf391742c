package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
)

// watchScreen shows one text after the other at the same place of a terminal. It writes over
// the text before, line by line: a screen that is cleared first flickers.
type watchScreen struct {
	out    io.Writer
	height func() int // of the terminal, in lines; 0: not known
}

// Control sequences of ECMA-48, and DEC's for the cursor and for lines that are too long.
const (
	clearAll   = "\x1b[2J"
	goHome     = "\x1b[H"
	clearLine  = "\x1b[K" // from the cursor to the end of the line
	clearBelow = "\x1b[J"
	beginWatch = "\x1b[?25l\x1b[?7l" // no cursor, and long lines end at the margin
	endWatch   = "\x1b[0m\x1b[?7h\x1b[?25h"
)

func newWatchScreen(out io.Writer) *watchScreen {
	_, _ = io.WriteString(out, beginWatch+clearAll)
	return &watchScreen{out, func() int {
		if f, ok := out.(*os.File); ok {
			if _, height, err := term.GetSize(int(f.Fd())); err == nil {
				return height
			}
		}
		return 0
	}}
}

// Write shows a whole text. The end of one that is too long is left out, or the terminal would
// scroll.
func (w *watchScreen) Write(text []byte) (int, error) {
	lines := slices.Collect(strings.Lines(string(text)))
	if room := w.height() - 1; room > 0 && len(lines) > room {
		more := fmt.Sprintf("… %d more lines\n", len(lines)-room+1)
		lines = append(lines[:room-1], more)
	}
	shown := strings.ReplaceAll(strings.Join(lines, ""), "\n", clearLine+"\n")
	_, err := io.WriteString(w.out, goHome+shown+clearBelow)
	return len(text), err
}

// close leaves the last text on the terminal, with the cursor below it.
func (w *watchScreen) close() { _, _ = io.WriteString(w.out, endWatch) }
