// Package security has no code. Its tests are the table of docs/operate/security.md, cell by
// cell: each actor, from a stranger to an operator, tries in each setting what it may do and
// what it may not, with clients that lie where a real one would not.
package security
