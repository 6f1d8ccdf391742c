//go:build unix

package discover

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
)

// zone is names with their addresses, and one with SRV records.
type zone map[string][]string

func (z zone) LookupHost(_ context.Context, host string) ([]string, error) {
	if z[host] == nil {
		return nil, errors.New("no such host")
	}
	return z[host], nil
}

func (z zone) LookupSRV(_ context.Context, service, proto, name string) (string, []*net.SRV, error) {
	if service+proto != "" || name != "_web._tcp.example" {
		return "", nil, errors.New("no such record")
	}
	return "", []*net.SRV{{Target: "a.example.", Port: 7001}, {Target: "gone.example.", Port: 7002}}, nil
}

func TestResolve(t *testing.T) {
	names := zone{"all.example": {"10.0.0.2", "10.0.0.1", "fd00::1"}, "a.example": {"10.0.0.9"}}
	for _, c := range []struct {
		seeds, want []string
		err         string
	}{
		{[]string{"b:1", "a:1", "b:1"}, []string{"a:1", "b:1"}, ""},
		{[]string{"dns:all.example:7000"}, []string{"10.0.0.1:7000", "10.0.0.2:7000", "[fd00::1]:7000"}, ""},
		{
			[]string{"dns:_web._tcp.example", "x:1"},
			[]string{"10.0.0.9:7001", "x:1"},
			"seed dns:_web._tcp.example: no such host",
		},
		{[]string{"dns:none.example:1", "x:1"}, []string{"x:1"}, "seed dns:none.example:1: no such host"},
		{[]string{"exec:printf 'h:1\\n# note\\n\\ni:2\\n'"}, []string{"h:1", "i:2"}, ""},
		{[]string{"exec:echo h"}, nil, `"h" is not a seed`},
		{[]string{"exec:exit 1"}, nil, "exit status 1"},
	} {
		got, err := Resolve(t.Context(), names, c.seeds)
		if !slices.Equal(got, c.want) || (err == nil) != (c.err == "") || err != nil &&
			!strings.Contains(err.Error(), c.err) {
			t.Errorf("%v: got %v, %v, want %v, %q", c.seeds, got, err, c.want, c.err)
		}
	}
}

func TestCheck(t *testing.T) {
	for seed, ok := range map[string]bool{
		"host:1": true, "[::1]:1": true, "dns:name:1": true, "dns:name": true, "exec:peers": true,
		"kubernetes:web:1": true, "kubernetes:ns/web:1": true,
		"kubernetes:": false, "kubernetes:web": false, "kubernetes:web:x": false, "kubernetes:/web:1": false,
		"kubernetes:ns/:1": false, "kubernetes:a/b/c:1": false, "kubernetes:a:b:1": false,
		"": false, "host": false, ":1": false, "host:x": false, "dns:": false, "dns::1": false, "exec: ": false,
	} {
		if err := Check(seed); (err == nil) != ok {
			t.Errorf("%q: %v", seed, err)
		}
	}
	if Dynamic([]string{"a:1"}) || !Dynamic([]string{"a:1", "dns:b"}) || !Dynamic([]string{"kubernetes:web:1"}) {
		t.Error("names and services are dynamic, an address is not")
	}
}
