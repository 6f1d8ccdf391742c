// Package queries has the queries that pleach-sql knows by name: each as SQL for one DuckDB,
// and as plans for a job.
package queries

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/pleach-go/pleach/sql"
)

//go:embed *.sql *.plan
var files embed.FS

// SQL returns a query for one DuckDB that has all rows.
func SQL(query string) (string, error) {
	b, err := files.ReadFile(query + ".sql")
	if err != nil {
		return "", fmt.Errorf("there is no query %s: choose one of %s", query, known("*.sql"))
	}
	return string(b), nil
}

// Plan returns a plan of a query.
func Plan(query, plan string) (*sql.Plan, error) {
	b, err := files.ReadFile(query + "-" + plan + ".plan")
	if err != nil {
		return nil, fmt.Errorf("there is no plan %s-%s: choose one of %s", query, plan, known("*.plan"))
	}
	return sql.ParsePlan(string(b))
}

func known(pattern string) string {
	names, err := fs.Glob(files, pattern)
	if err != nil {
		panic(err) // The patterns are constants.
	}
	for i := range names {
		names[i], _, _ = strings.Cut(names[i], ".")
	}
	return strings.Join(names, ", ")
}
