package ui

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func get(method, path string) *http.Response {
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w.Result()
}

// Every file is served, with its type and with the headers that protect it.
func TestFilesHaveHeaders(t *testing.T) {
	types := map[string]string{"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
	paths, err := fs.Glob(files, "static/*")
	if err != nil || len(paths) < 5 {
		t.Fatal(paths, err)
	}
	for _, path := range append(paths, "static/") {
		name := strings.TrimPrefix(path, "static/")
		if name == "index.html" {
			continue // it is the directory itself
		}
		r := get("GET", Path+name)
		_, suffix, _ := strings.Cut(name, ".")
		if name == "" {
			suffix = "html"
		}
		if r.StatusCode != http.StatusOK || !strings.HasPrefix(r.Header.Get("Content-Type"), types[suffix]) {
			t.Errorf("%s: %s, %s", name, r.Status, r.Header.Get("Content-Type"))
		}
		for header := range headers {
			if r.Header.Get(header) == "" {
				t.Errorf("%s: no %s", name, header)
			}
		}
	}
	policy := get("GET", Path).Header.Get("Content-Security-Policy")
	for _, part := range []string{
		"default-src 'none'", "script-src 'self';", "frame-ancestors 'none'",
		"require-trusted-types-for 'script'",
	} {
		if !strings.Contains(policy, part) {
			t.Errorf("%q lacks %s", policy, part)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
		t.Error(policy)
	}
}

func TestOtherPathsAreNotFound(t *testing.T) {
	for _, path := range []string{"none.js", "../ui.go", "%2e%2e/ui.go", "static/main.js"} {
		if r := get("GET", Path+path); r.StatusCode == http.StatusOK {
			t.Errorf("%s: %s", path, r.Status)
		}
	}
}

// The files load nothing from elsewhere, have no inline script or style, and never make
// markup of text. The policy forbids it too; here it is found without a browser.
func TestFilesAreHarmless(t *testing.T) {
	forbidden := regexp.MustCompile(
		`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|srcdoc|` +
			`<script(?:>| type="module">)|<style| style=|<[^>]* on[a-z]+=|@import|url\(|https?://`)
	paths, _ := fs.Glob(files, "static/*")
	for _, path := range paths {
		text, err := fs.ReadFile(files, path)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range forbidden.FindAllString(strings.ReplaceAll(string(text), "http://www.w3.org/2000/svg", ""),
			-1) {
			t.Errorf("%s has %s", path, found)
		}
	}
}

// Without JavaScript the page says what to do.
func TestPageWithoutScript(t *testing.T) {
	index, err := fs.ReadFile(files, "static/index.html")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(index), "<noscript>") || !strings.Contains(string(index), "pleach status") {
		t.Error("no word for browsers without JavaScript")
	}
}
