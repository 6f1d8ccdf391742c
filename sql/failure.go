package sql

import (
	"fmt"
	"strings"

	"github.com/pleach-go/pleach/sql/internal/duck"
)

// An error in a query, such as a text that is not the number it is cast to, happens again to every
// process that takes the task over. So the process does not stop with it: it sends the error instead
// of rows, and the query ends with the same error in all processes.

// failed begins what a task sends instead of rows. Rows are an Arrow stream, a sample begins with a
// power of two and a count with a digit.
const failed = "error: "

// failure returns what a task sends if err is the query's, and whether it is.
func (r *runner) failure(stage, task int, err error) (text []byte, ok bool) {
	e, ok := r.queryError(fmt.Sprintf("phase %s of task %d", r.job.Plan.Stages[stage].Name, task), err)
	if !ok {
		return nil, false
	}
	return []byte(failed + e.Text), true
}

// queryError returns the error of the query that err is, and whether it is one. For a plan that the
// user has written, it has the place and DuckDB's excerpt of the statement. Those of a planned query
// quote text that only the planner has seen.
func (r *runner) queryError(where string, err error) (*QueryError, bool) {
	text, ok := duck.QueryError(err)
	switch {
	case !ok:
		return nil, false
	case r.planned:
		return &QueryError{duck.WithoutExcerpt(text)}, true
	}
	return &QueryError{where + ": " + text}, true
}

// failureOf returns the error of the first task that has sent one, by number. All processes have
// received the same ones.
func failureOf(parts [][]byte) error {
	for _, part := range parts {
		if len(part) >= len(failed) && string(part[:len(failed)]) == failed {
			return &QueryError{strings.TrimPrefix(string(part), failed)}
		}
	}
	return nil
}
