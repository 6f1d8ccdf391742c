// Package ui is the page of an agent for operators: the ring and the tree of its group, the
// states of members, the last views, throughput and lag. It is files for a browser, without a
// build step, and reads the agent's API. It changes nothing.
//
// The files tell nothing of the group, so they need no token. The page asks for the token
// where the API wants one, and sends it as a header: other pages in the same browser cannot
// make use of it, as they could of a cookie.
package ui

import (
	"embed"
	"io/fs"
	"net/http"
)

// Path is where the page is.
const Path = "/ui/"

//go:embed static
var files embed.FS

// headers let a browser run the page's own scripts and styles only, and ask only the agent
// that has served it. Trusted types refuse text that would be parsed as HTML: names and
// tags of members come from outside.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cache-Control":                "no-cache", // another version of the agent has other files
}

// Handler serves the files below [Path].
func Handler() http.Handler {
	static, err := fs.Sub(files, "static")
	if err != nil {
		panic(err) // impossible: the name is valid
	}
	serve := http.StripPrefix(Path, http.FileServerFS(static))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		serve.ServeHTTP(w, r)
	})
}
