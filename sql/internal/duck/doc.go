// Package duck is DuckDB as a job needs it: SQL in, Arrow record batches out and in. All
// that the module needs of DuckDB's binding is here. The binding has its Arrow interface
// behind a build tag, duckdb_arrow.
package duck
