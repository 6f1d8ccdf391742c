//go:build duckdb_arrow

package duck

import (
	"errors"
	"strings"

	"github.com/duckdb/duckdb-go/v2"
)

// ofQuery are the errors that follow from a statement and the rows that it reads. The others, such as
// those of files and memory, are about this process.
var ofQuery = map[duckdb.ErrorType]bool{
	duckdb.ErrorTypeOutOfRange: true, duckdb.ErrorTypeConversion: true, duckdb.ErrorTypeInvalidInput: true,
	duckdb.ErrorTypeMismatchType: true, duckdb.ErrorTypeDivideByZero: true, duckdb.ErrorTypeInvalidType: true,
	duckdb.ErrorTypeNotImplemented: true, duckdb.ErrorTypeExpression: true, duckdb.ErrorTypeConstraint: true,
	duckdb.ErrorTypeBinder: true, duckdb.ErrorTypeCatalog: true, duckdb.ErrorTypeParser: true,
	duckdb.ErrorTypeSyntax: true,
}

// QueryError returns the text of an error that happens wherever the statement runs over the same rows,
// and whether err is one.
func QueryError(err error) (text string, ok bool) {
	e, ok := errors.AsType[*duckdb.Error](err)
	// A damaged file is invalid input, too, and there may be another copy of it.
	if !ok || !ofQuery[e.Type] || strings.Contains(e.Msg, ".parquet") {
		return "", false
	}
	return e.Msg, true
}

// WithoutExcerpt returns the text of an error without DuckDB's excerpt of the statement.
func WithoutExcerpt(text string) string {
	text, _, _ = strings.Cut(text, "\n\nLINE ")
	return text
}
