package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport/fault"
	"github.com/pleach-go/pleach/transport/mem"
)

// newService returns an instance in this process. Open makes it a member of a group.
func newService(t *testing.T, open func(c pleach.Config) (*pleach.Group, error)) *service {
	t.Helper()
	flags := &table{flags: make(map[string]setting)}
	group, err := open(pleach.Config{
		Group: "flags", State: flags, OnMessage: flags.receive, OnCurrent: func() { flags.current.Store(true) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = group.Abort() })
	return &service{flags, group}
}

// put sets a flag through the HTTP handler, and returns the status.
func (s *service) put(name, value string) int {
	request := httptest.NewRequest("PUT", "/flags/"+name, strings.NewReader(value))
	response := httptest.NewRecorder()
	s.handler().ServeHTTP(response, request)
	return response.Code
}

// await waits until a condition holds. The guide to tests has it: programs cannot import testutil.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no " + what)
		}
	}
}

// Members over TCP on free ports of this host: an instance that joins has the flags, and the other one
// continues when it crashes.
func TestJoinerHasFlags(t *testing.T) {
	first := newService(t, func(c pleach.Config) (*pleach.Group, error) { return pleach.Create(t.Context(), c) })
	if status := first.put("dark-mode", "on"); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	seed := first.group.Self().Address
	second := newService(t, func(c pleach.Config) (*pleach.Group, error) { return pleach.Join(t.Context(), c, seed) })
	await(t, "state", second.table.current.Load)
	if got := second.table.all()["dark-mode"].Value; got != "on" {
		t.Errorf("the joiner has %q", got)
	}
	_ = second.group.Abort() // a crash, as the first instance sees it
	await(t, "view of 1", func() bool { return first.group.Size() == 1 })
	if status := first.put("dark-mode", "off"); status != http.StatusOK {
		t.Errorf("after the crash: status %d", status)
	}
}

// Members in memory, with injected faults and the clock of a synctest bubble: a partition of minutes
// takes milliseconds.
func TestMinorityRefusesChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 3
		memory := mem.NewNetwork(size, mem.Config{})
		network := fault.New(1, fault.Config{})
		var addresses []string // IDs only: nobody listens there, and an IP address needs no lookup
		for rank := range size {
			addresses = append(addresses, fmt.Sprintf("192.0.2.%d:1", rank+1))
		}
		var all []*service
		for rank := range size {
			all = append(all, newService(t, func(c pleach.Config) (*pleach.Group, error) {
				c.Addresses, c.Rank = addresses, rank
				c.Network.Transport = network.Wrap(protocol.Rank(rank), memory.Member(protocol.Rank(rank)))
				return pleach.Start(t.Context(), c)
			}))
		}
		for _, s := range all {
			await(t, "state", s.table.current.Load)
		}
		if status := all[2].put("dark-mode", "on"); status != http.StatusOK {
			t.Fatalf("status %d", status)
		}

		partition, err := fault.Parse("partition 0 1 | 2")
		if err != nil {
			t.Fatal(err)
		}
		if err := network.Run(t.Context(), partition); err != nil {
			t.Fatal(err)
		}
		await(t, "view of 2", func() bool { return all[0].group.Size() == 2 })
		if status := all[0].put("dark-mode", "off"); status != http.StatusOK {
			t.Errorf("the majority: status %d", status)
		}
		if status := all[2].put("dark-mode", "lost"); status != http.StatusServiceUnavailable {
			t.Errorf("the minority: status %d", status)
		}

		network.Do(fault.Heal{})
		await(t, "eviction", func() bool { return errors.Is(all[2].group.Err(), pleach.ErrEvicted) })
		if got := all[1].table.all()["dark-mode"].Value; got != "off" {
			t.Errorf("after the partition, the majority has %q", got)
		}
	})
}
