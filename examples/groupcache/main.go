// Groupcache is a service whose instances cache the files of a directory that they share. A file that
// is changed through one instance is stale at none of them afterwards.
//
//	members="127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003"
//	go run ./examples/groupcache --listen 127.0.0.1:7001 --http 127.0.0.1:8001 --data /tmp/files $members
//
// starts the first of three instances. The arguments are the addresses of all of them in the group.
//
//	curl -X PUT -d hello http://127.0.0.1:8001/greeting
//	curl http://127.0.0.1:8002/greeting
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mailgun/groupcache/v2"

	"github.com/pleach-go/pleach"
	pleachgroupcache "github.com/pleach-go/pleach/contrib/groupcache"
)

const (
	joinTimeout = 5 * time.Minute // other instances may start later
	cacheBytes  = 64 << 20
	maxFile     = 1 << 20
)

// service is an instance.
type service struct {
	data  string // directory
	cache *pleachgroupcache.Cache
	group *pleach.Group
	pool  *groupcache.HTTPPool
}

// open makes this process an instance. The URL of each one is its meta, so that all know their peers.
func open(ctx context.Context, data, listen, url string, members []string) (*service, error) {
	s := &service{data: data, pool: groupcache.NewHTTPPoolOpts(url, nil)}
	invalidations := pleachgroupcache.New()
	s.cache = invalidations.NewCache("files", cacheBytes, groupcache.GetterFunc(s.load))
	var err error
	s.group, err = pleach.Join(ctx, pleach.Config{
		Group: "files", Listen: listen, Expect: len(members), Meta: url,
		State: invalidations, OnMessage: invalidations.Receive,
	}, members...)
	if err != nil {
		return nil, err
	}
	go s.followViews()
	return s, nil
}

// followViews makes the members of each view those that load and cache files for each other.
func (s *service) followViews() {
	for v := range s.group.Views(context.Background()) {
		var urls []string
		for _, m := range v.Members() {
			if m.Meta != "" {
				urls = append(urls, m.Meta)
			}
		}
		s.pool.Set(urls...)
	}
}

// load reads a file.
func (s *service) load(_ context.Context, name string, dest groupcache.Sink) error {
	content, err := os.ReadFile(filepath.Join(s.data, name))
	if errors.Is(err, fs.ErrNotExist) {
		return &groupcache.ErrNotFound{Msg: name}
	}
	if err != nil {
		return err
	}
	return dest.SetBytes(content, time.Time{})
}

// get answers from the cache.
func (s *service) get(w http.ResponseWriter, r *http.Request) {
	var content []byte
	err := s.cache.Get(r.Context(), r.PathValue("name"), groupcache.AllocatingByteSliceSink(&content))
	switch {
	case errors.Is(err, &groupcache.ErrNotFound{}):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		_, _ = w.Write(content)
	}
}

// put changes a file, and replies when no instance has the old content anymore.
func (s *service) put(w http.ResponseWriter, r *http.Request) {
	content, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxFile))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	name := r.PathValue("name")
	err = os.WriteFile(filepath.Join(s.data, name), content, 0o600)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	receipt, err := s.cache.Invalidate(r.Context(), s.group, name)
	if err != nil {
		http.Error(w, "changed, but not at all instances yet: try again: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintf(w, "%d instances\n", len(receipt.Members))
}

func run(ctx context.Context) error {
	listen := flag.String("listen", "", "own `ADDRESS` in the group")
	address := flag.String("http", "", "`ADDRESS` of the HTTP server")
	data := flag.String("data", "", "`DIRECTORY` of the files, shared by all instances")
	flag.Parse()

	joining, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	s, err := open(joining, *data, *listen, "http://"+*address, flag.Args())
	if err != nil {
		return err
	}
	defer s.group.Close()
	mux := http.NewServeMux()
	mux.Handle("/_groupcache/", s.pool)
	mux.HandleFunc("GET /{name}", s.get)
	mux.HandleFunc("PUT /{name}", s.put)
	server := &http.Server{Addr: *address, Handler: mux, ReadHeaderTimeout: time.Minute}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	defer server.Close()
	select {
	case err := <-failed:
		return err
	case <-s.group.Done():
		return s.group.Err()
	case <-ctx.Done():
		return nil
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}
