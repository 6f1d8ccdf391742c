package duck

import (
	"fmt"
	"strings"
)

// Copy returns the statement that writes the rows of a query to a file: as parquet, csv or
// json.
func Copy(query, file, format string) string {
	return fmt.Sprintf("COPY (%s\n) TO %s (FORMAT %s)", query, Literal(file), format)
}

// ParquetView returns the statement that creates a view of the rows of Parquet files.
func ParquetView(name string, files []string) string {
	quoted := make([]string, len(files))
	for i, f := range files {
		quoted[i] = Literal(f)
	}
	return "CREATE OR REPLACE VIEW " + Identifier(name) + " AS FROM read_parquet([" + strings.Join(quoted, ", ") + "])"
}

// Identifier quotes a name.
func Identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// Literal quotes a string.
func Literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
