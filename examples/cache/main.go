// Cache is a table that every process of a group holds in its memory. Reads are local. A process
// that may have missed something, because it was stopped or cut off, does not answer.
//
//	go run ./examples/cache 127.0.0.1:7001 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003
//
// starts one of three processes: its own address, and those of all. It reads commands from its
// input: "set KEY VALUE", and "get KEY".
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
)

// staleness is by how much an answer may be out of date.
const staleness = 100 * time.Millisecond

// errStale is returned instead of a value that may be out of date.
var errStale = errors.New("this process may have missed something")

// cache is the table, and the state of the group.
type cache struct {
	group *pleach.Group

	mu     sync.RWMutex
	values map[string]string
}

// open begins the group together with others, or joins it.
func open(ctx context.Context, listen string, seeds ...string) (*cache, error) {
	c := &cache{values: make(map[string]string)}
	config := pleach.Config{
		Group: "cache", Listen: listen, Expect: len(seeds), State: c, OnMessage: c.apply,
		Recovery: pleach.Recovery{Rejoin: true},
	}
	group, err := pleach.Join(ctx, config, seeds...)
	c.group = group
	return c, err
}

// Snapshot implements [pleach.State].
func (c *cache) Snapshot(w io.Writer) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return json.NewEncoder(w).Encode(c.values)
}

// Restore implements [pleach.State].
func (c *cache) Restore(r io.Reader) error {
	values := make(map[string]string)
	if err := json.NewDecoder(r).Decode(&values); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values = maps.Clone(values)
	return nil
}

// apply takes a change, of this process or of another one. Where changes are missing, the state that
// is restored next has them.
func (c *cache) apply(m pleach.Message, err error) {
	if err != nil {
		return
	}
	if key, value, ok := strings.Cut(string(m.Data), " "); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.values[key] = value
	}
}

// set changes a value in all processes. One process writes a key: changes of different processes
// have no order.
func (c *cache) set(ctx context.Context, key, value string) error {
	return c.group.Broadcast(ctx, []byte(key+" "+value))
}

// peek returns a value, which may be out of date.
func (c *cache) peek(key string) string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.values[key]
}

// get returns a value that is not out of date by more than staleness. It takes the value first: the
// process may be stopped between the two.
func (c *cache) get(key string) (string, error) {
	value := c.peek(key)
	if !c.group.FreshWithin(staleness) {
		return "", errStale
	}
	return value, nil
}

func main() {
	ctx := context.Background()
	if len(os.Args) < 3 {
		log.Fatal("usage: cache LISTEN ADDRESS...")
	}
	c, err := open(ctx, os.Args[1], os.Args[2:]...)
	if err != nil {
		log.Fatal(err)
	}
	defer c.group.Close()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		command, rest, _ := strings.Cut(in.Text(), " ")
		switch key, value, _ := strings.Cut(rest, " "); command {
		case "set":
			fmt.Println(c.set(ctx, key, value))
		case "get":
			fmt.Println(c.get(key))
		}
	}
}
