package api

import (
	"context"
	"net/http"
)

// maxName is the longest name of a query in bytes.
const maxName = 200

// post calls f with the body of a request of at most so many bytes, within its time, and writes what
// f returns.
func (s *Server) post(w http.ResponseWriter, r *http.Request, most int64,
	f func(ctx context.Context, body []byte) (any, error),
) error {
	ctx, cancel, err := bounded(r)
	if err != nil {
		return err
	}
	defer cancel()
	body, free, err := s.readBody(w, r, most)
	if err != nil {
		return err
	}
	defer free()
	result, err := f(ctx, body)
	return reply(w, result, err)
}

// postMessage is post for a body that is sent as a message, with the header that the request gives it.
func (s *Server) postMessage(w http.ResponseWriter, r *http.Request,
	f func(ctx context.Context, body []byte) (any, error),
) error {
	ctx, err := withHeader(r.Context(), r.Header)
	if err != nil {
		return err
	}
	return s.post(w, r.WithContext(ctx), MaxBody, f)
}

// broadcast sends the body to all members.
func (s *Server) broadcast(w http.ResponseWriter, r *http.Request) error {
	topic, wait := r.URL.Query().Get("topic"), r.URL.Query().Get("wait")
	if wait != "" && wait != "stable" {
		return badRequest("wait=%s: write wait=stable, or nothing", wait)
	}
	toFleet := r.URL.Query().Get("fleet") == "true"
	return s.postMessage(w, r, func(ctx context.Context, body []byte) (any, error) {
		if toFleet {
			return s.agent.BroadcastFleet(ctx, topic, body, wait == "stable")
		}
		return s.agent.Broadcast(ctx, topic, body, wait == "stable")
	})
}

// send sends the body to one member.
func (s *Server) send(w http.ResponseWriter, r *http.Request) error {
	to := r.URL.Query().Get("to")
	if to == "" {
		return badRequest("write the rank or the ID of a member: ?to=RANK or ?to=ID")
	}
	return s.postMessage(w, r,
		func(ctx context.Context, body []byte) (any, error) { return s.agent.Send(ctx, to, body) })
}

// query asks all members, with the body as input.
func (s *Server) query(w http.ResponseWriter, r *http.Request) error {
	name := r.URL.Query().Get("name")
	if name == "" || len(name) > maxName {
		return badRequest("write the name of a query, of at most %d bytes: ?name=ping", maxName)
	}
	ask := s.agent.Query
	if r.URL.Query().Get("fleet") == "true" {
		ask = s.agent.QueryFleet
	}
	return s.post(w, r, MaxBody, func(ctx context.Context, body []byte) (any, error) { return ask(ctx, name, body) })
}

func (s *Server) members(w http.ResponseWriter, _ *http.Request) error {
	members, err := s.agent.Members()
	return reply(w, members, err)
}

func (s *Server) status(w http.ResponseWriter, _ *http.Request) error {
	status, err := s.agent.Status()
	return reply(w, status, err)
}

func (s *Server) views(w http.ResponseWriter, _ *http.Request) error {
	views, err := s.agent.Views()
	return reply(w, views, err)
}

func (s *Server) tree(w http.ResponseWriter, _ *http.Request) error {
	tree, err := s.agent.Tree()
	return reply(w, tree, err)
}
