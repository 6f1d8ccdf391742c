package cli

import (
	"fmt"
	"strings"
	"time"
)

// Count is a number of things, as in 1 member or 3 members.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Printable makes sure that what others have sent does nothing to a terminal.
func Printable(text string) string {
	quoted := fmt.Sprintf("%+q", text)
	if strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 ||
			r == '\uFFFD'
	}) {
		return quoted
	}
	return text
}

// Micro leaves as many digits of a time as there is sense in.
func Micro(d time.Duration) time.Duration { return d.Round(10 * time.Nanosecond) }
