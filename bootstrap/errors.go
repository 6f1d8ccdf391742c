package bootstrap

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/protocol"
)

// NotFoundError is returned by [Detect] when it recognizes no launcher.
type NotFoundError struct {
	// Tried has every known launcher and its variables.
	Tried []Attempt
	// Set are those of the variables that are set; none of the launchers has all.
	Set []string
}

// Attempt is a launcher and the variables by which it is recognized.
type Attempt struct {
	Launcher  string
	Variables []string
}

func (e *NotFoundError) add(l launcher, env environment) {
	e.Tried = append(e.Tried, Attempt{l.name(), l.variables()})
	for _, name := range l.variables() {
		if env(name) != "" && !slices.Contains(e.Set, name) {
			e.Set = append(e.Set, name)
		}
	}
}

func (e *NotFoundError) Error() string {
	var b strings.Builder
	b.WriteString("bootstrap: no launcher recognized: looked for ")
	for i, l := range e.Tried {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s (%s)", l.Launcher, strings.Join(l.Variables, ", "))
	}
	if len(e.Set) > 0 {
		fmt.Fprintf(&b, "; of these only %s is set", strings.Join(e.Set, ", "))
	}
	b.WriteString("; start it with pleach run, or set PLEACH_RANK and PLEACH_ADDRESSES")
	return b.String()
}

// VariableError is returned by [Detect] when an environment variable is invalid.
type VariableError struct {
	Name, Value string
	// Problem says what is wrong and what to write instead.
	Problem string
	// Err is the cause, if there is one.
	Err error
}

// maxShown bounds how much of a value is shown: a list of nodes can be very long.
const maxShown = 80

func (e *VariableError) Error() string {
	state := "=" + e.Value
	switch {
	case e.Value == "":
		state = " is not set"
	case len(e.Value) > maxShown:
		state = "=" + e.Value[:maxShown] + "…"
	}
	text := fmt.Sprintf("bootstrap: %s%s: %s", e.Name, state, e.Problem)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *VariableError) Unwrap() error { return e.Err }

// MissingError is returned by [Assignment.Check] when the addresses of the processes
// are not known.
type MissingError struct {
	Launcher string
	Size     protocol.Rank
	// How says how to provide them.
	How string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("bootstrap: %s does not provide the addresses of the %d processes: %s", e.Launcher, e.Size, e.How)
}
