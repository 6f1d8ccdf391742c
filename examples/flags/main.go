// Flags is a feature-flag service. Every instance holds all flags in memory and serves them over HTTP;
// a change at one instance reaches all others.
//
//	go run ./examples/flags --listen 127.0.0.1:7001 --http 127.0.0.1:8001 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003
//
// starts the first of three instances. The arguments are the addresses of all of them. docs/guide/tutorial.md
// explains the program.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/prom"
)

const (
	joinTimeout   = 5 * time.Minute // the other instances may start later
	changeTimeout = 5 * time.Second
	leaveTimeout  = 5 * time.Second
	maxValue      = 1 << 10
	format        = "1" // of messages and snapshots: instances with another format are refused
)

// setting is the value of a flag. Of two settings, every instance keeps the newer one, so the order in
// which changes of different instances arrive does not matter.
type setting struct {
	Value   string `json:"value"`
	Version int64  `json:"version"`
	By      string `json:"by"` // the ID of the instance that made the change
}

func (s setting) newer(than setting) bool {
	return cmp.Or(cmp.Compare(s.Version, than.Version), cmp.Compare(s.By, than.By)) > 0
}

// change is a message.
type change struct {
	Name string `json:"name"`
	setting
}

// table is the state of the group. It implements [pleach.State].
type table struct {
	current atomic.Bool // the first state has arrived

	mu      sync.RWMutex
	flags   map[string]setting
	version int64 // the highest one so far
}

// Snapshot writes the flags for an instance that joins.
func (t *table) Snapshot(w io.Writer) error { return json.NewEncoder(w).Encode(t.all()) }

// Restore replaces the flags when this instance joins.
func (t *table) Restore(r io.Reader) error {
	flags := make(map[string]setting)
	if err := json.NewDecoder(r).Decode(&flags); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flags = flags
	for _, s := range flags {
		t.version = max(t.version, s.Version)
	}
	return nil
}

// receive handles a message: a change of any instance.
func (t *table) receive(m pleach.Message, err error) {
	if err != nil { // this instance was removed and has rejoined: Restore is next
		log.Print(err)
		return
	}
	var c change
	if err := json.Unmarshal(m.Data, &c); err != nil {
		log.Printf("message of rank %d: %v", m.From, err)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version = max(t.version, c.Version)
	if c.newer(t.flags[c.Name]) {
		t.flags[c.Name] = c.setting
	}
}

func (t *table) all() map[string]setting {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return maps.Clone(t.flags)
}

// nextVersion returns a version above all that this instance knows.
func (t *table) nextVersion() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version = max(t.version+1, time.Now().UnixNano())
	return t.version
}

// service serves the table over HTTP.
type service struct {
	table *table
	group *pleach.Group
}

func (s *service) handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prom.New(s.group))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /flags", s.list)
	mux.HandleFunc("PUT /flags/{name}", s.set)
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}

func (s *service) list(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.table.all())
}

// set changes a flag, and replies when every instance in the view has applied the change.
func (s *service) set(w http.ResponseWriter, r *http.Request) {
	value, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxValue))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c := change{r.PathValue("name"), setting{string(value), s.table.nextVersion(), s.group.Self().ID}}
	message, err := json.Marshal(c)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), changeTimeout)
	defer cancel()
	before := s.group.Sent()
	if err := s.group.Broadcast(ctx, message); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable) // no quorum, or not a member
		return
	}
	receipt, err := s.group.WaitStable(ctx, pleach.Since(before), pleach.Processed())
	if err != nil { // some instances may have the change: the client tries again
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintf(w, "%d instances have it\n", len(receipt.Members))
}

func (s *service) ready(w http.ResponseWriter, _ *http.Request) {
	if err := s.group.View().Err; err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	} else if !s.table.current.Load() {
		http.Error(w, "the flags have not arrived yet", http.StatusServiceUnavailable)
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	options := flag.NewFlagSet("flags", flag.ExitOnError)
	listen := options.String("listen", "127.0.0.1:7001", "`host:port` for the other instances")
	address := options.String("http", "127.0.0.1:8001", "`host:port` of the HTTP API")
	data := options.String("data", "", "`directory` for this instance's vote")
	certificates := options.String("tls", "", "`directory` with cert.pem, key.pem and ca.pem")
	version := options.String("version", "v1", "`version` of the program, for the other instances")
	_ = options.Parse(args) // it exits
	t := &table{flags: make(map[string]setting)}
	config := pleach.Config{
		Group: "flags", Listen: *listen, Expect: options.NArg(),
		State: t, OnMessage: t.receive, OnCurrent: func() { t.current.Store(true) },
		Meta: *version, Agree: map[string]string{"format": format},
		Recovery: pleach.Recovery{DataDir: *data, Rejoin: true}, Logger: slog.Default(),
	}
	if *certificates != "" {
		file := func(name string) string { return filepath.Join(*certificates, name) }
		var err error
		config.Security.TLS, err = pleach.TLSFiles(file("cert.pem"), file("key.pem"), file("ca.pem"))
		if err != nil {
			return err
		}
	}
	joining, cancel := context.WithTimeout(ctx, joinTimeout)
	group, err := pleach.Join(joining, config, options.Args()...)
	cancel()
	if err != nil {
		return err
	}
	defer group.Close()
	return serve(ctx, group, t, *address)
}

// serve serves HTTP until ctx or the membership ends, and then leaves the group.
func serve(ctx context.Context, group *pleach.Group, t *table, address string) error {
	s := &service{t, group}
	server := &http.Server{Addr: address, Handler: s.handler(), ReadHeaderTimeout: changeTimeout}
	failed := make(chan error, 2)
	go func() { failed <- server.ListenAndServe() }()
	go func() {
		for view := range group.Views(ctx) {
			var versions []string
			for _, m := range view.Members() {
				versions = append(versions, m.ID+" "+m.Meta)
			}
			log.Printf("view %d: %q, error %v", view.Number, versions, view.Err)
		}
		failed <- group.Err() // nil at the end of ctx
	}()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	return errors.Join(err, server.Shutdown(leaving), group.Leave(leaving))
}
