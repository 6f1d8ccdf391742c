//go:build !duckdb_arrow

package duck

// The binding's Arrow interface needs a build tag: go build -tags duckdb_arrow.
var _ = build_with_tags_duckdb_arrow
