package api

import (
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"github.com/pleach-go/pleach/agent/transfer"
)

// Upload is a file that a client sends, for every member to get it.
type Upload struct {
	Dir     string      `json:"dir"`
	Name    string      `json:"name"`
	Mode    fs.FileMode `json:"mode"`
	Rate    int64       `json:"rate"` // bytes in a second, at most; 0: no limit
	Fleet   bool        `json:"-"`    // to the members of all zones
	Size    int64       `json:"-"`    // of the content; -1: it is not known yet
	Content io.Reader   `json:"-"`
}

// CopyEvent is a line of the reply to a copy: how far it is, and at last its result. Error
// is why it has ended before every member had the file or could not have it.
type CopyEvent struct {
	Progress *transfer.Progress `json:"progress,omitempty"`
	Result   *transfer.Result   `json:"result,omitempty"`
	Error    string             `json:"error,omitempty"`
}

// progressInterval is how often a copy tells how far it is, and defaultMode what files have
// whose client does not say.
const (
	progressInterval = 200 * time.Millisecond
	defaultMode      = 0o644
)

// files copies the body to a directory of every member. It takes as long as it takes: a client
// that goes away ends it.
func (s *Server) files(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	u := Upload{
		Dir: q.Get("dir"), Name: q.Get("name"), Mode: defaultMode, Fleet: q.Get("fleet") == "true",
		Size: r.ContentLength, Content: r.Body,
	}
	if u.Name == "" || u.Dir == "" {
		return badRequest("write the name of the file and the directory that it goes to: ?name=FILE&dir=DIRECTORY")
	}
	if text := q.Get("mode"); text != "" {
		mode, err := strconv.ParseUint(text, 8, 32)
		if err != nil || fs.FileMode(mode)&^fs.ModePerm != 0 {
			return badRequest("mode=%s: write permissions as an octal number, as in mode=644", text)
		}
		u.Mode = fs.FileMode(mode)
	}
	if text := q.Get("rate"); text != "" {
		rate, err := strconv.ParseInt(text, 10, 64)
		if err != nil || rate < 1 {
			return badRequest("rate=%s: write a number of bytes in a second, as in rate=10000000", text)
		}
		u.Rate = rate
	}
	begun, told := false, time.Time{}
	result, err := s.agent.Copy(r.Context(), u, func(p transfer.Progress) {
		if now := time.Now(); now.Sub(told) >= progressInterval {
			begun, told = true, now
			writeEvent(w, CopyEvent{Progress: &p})
		}
	})
	if err != nil && !begun {
		return err
	}
	last := CopyEvent{Result: &result}
	if err != nil {
		last.Error = err.Error()
	}
	writeEvent(w, last)
	return nil
}

// writeEvent writes a line at once.
func writeEvent(w http.ResponseWriter, e CopyEvent) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	_ = json.NewEncoder(w).Encode(e) // the client may be gone
	_ = http.NewResponseController(w).Flush()
}
