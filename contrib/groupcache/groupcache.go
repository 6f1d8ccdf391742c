// Package pleachgroupcache invalidates keys of groupcache (github.com/mailgun/groupcache) at all
// instances of a service, with a receipt: once [Cache.Invalidate] has returned, no instance in
// the receipt serves a value that was loaded before the call.
//
//	invalidations := pleachgroupcache.New()
//	users := invalidations.NewCache("users", 64<<20, groupcache.GetterFunc(load))
//	group, err := pleach.Join(ctx, pleach.Config{
//		Group: "users", State: invalidations, OnMessage: invalidations.Receive,
//	}, seeds...)
//	err = users.Get(ctx, "42", sink)
//	// After a change of the user in the database:
//	receipt, err := users.Invalidate(ctx, group, "42")
//
// groupcache itself removes a key from one instance after the other. A value that is being loaded
// meanwhile, or fetched from an instance that has not removed it yet, is cached again and stays stale.
// This package removes nothing. It extends each key by a stamp, which every invalidation changes in the
// same way at all instances. A value that is loaded too late gets an old stamp, for which no instance
// asks anymore. Old values leave the cache when it needs their memory.
package pleachgroupcache

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"

	"github.com/mailgun/groupcache/v2"

	"github.com/pleach-go/pleach"
)

// Topic is the topic of invalidations.
const Topic = "pleach/groupcache"

// buckets is the number of stamps. Keys share them by their hash: an invalidation also makes
// instances load one of so many other keys again.
const buckets = 1 << 14

// Sizes in messages and keys.
const (
	nonceSize  = 8
	bucketSize = 2
	stampSize  = 16 // hexadecimal
)

// Invalidations are the stamps of the keys of all caches of a process, and the state of its group. It
// implements [pleach.State]. It is safe for concurrent use.
type Invalidations struct {
	mu     sync.RWMutex
	stamps []uint64
}

// New returns the stamps of a process. They are random until the process has the group's: until then,
// it shares no values with other instances.
func New() *Invalidations {
	i := &Invalidations{stamps: make([]uint64, buckets)}
	i.diverge()
	return i
}

// Cache is a cache whose keys can be invalidated. Several caches may share the same Invalidations.
type Cache struct {
	invalidations *Invalidations
	group         *groupcache.Group
}

// NewCache makes a cache by groupcache's NewGroup: all instances use the same name. The getter loads
// values from their source. A program must not use the groupcache group of this name directly.
func (i *Invalidations) NewCache(name string, bytes int64, getter groupcache.Getter) *Cache {
	load := func(ctx context.Context, stamped string, dest groupcache.Sink) error {
		if len(stamped) < stampSize {
			return fmt.Errorf("key %q of cache %q has no stamp", stamped, name)
		}
		return getter.Get(ctx, stamped[:len(stamped)-stampSize], dest)
	}
	return &Cache{i, groupcache.NewGroup(name, bytes, groupcache.GetterFunc(load))}
}

// Get gets a value, from this instance, from another one or from its source.
func (c *Cache) Get(ctx context.Context, key string, dest groupcache.Sink) error {
	return c.group.Get(ctx, key+c.invalidations.stampOf(c.bucket(key)), dest)
}

// Invalidate invalidates keys at all instances. Call it after the values have changed at their source.
// All members in the receipt have the new values, or load them when they are asked. If the error is
// not nil, some instances may have the old ones: invalidate the keys again. It must not be called by
// the goroutine that receives messages.
func (c *Cache) Invalidate(ctx context.Context, group *pleach.Group, keys ...string) (pleach.Receipt, error) {
	message := binary.BigEndian.AppendUint64(nil, rand.Uint64())
	for _, key := range keys {
		message = binary.BigEndian.AppendUint16(message, c.bucket(key))
	}
	before := group.Sent()
	if err := group.BroadcastTopic(ctx, Topic, message); err != nil {
		return pleach.Receipt{}, err
	}
	return group.WaitStable(ctx, pleach.Since(before), pleach.Processed())
}

// bucket returns the bucket of a key. It is the same in all processes.
func (c *Cache) bucket(key string) uint16 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, c.group.Name()+"/"+key)
	return uint16(h.Sum64() % buckets)
}

// stampOf returns the current stamp of a bucket.
func (i *Invalidations) stampOf(bucket uint16) string {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return fmt.Sprintf("%0"+strconv.Itoa(stampSize)+"x", i.stamps[bucket])
}

// Receive takes the messages of the group, as Config.OnMessage or for it. Messages of other topics
// have no effect.
func (i *Invalidations) Receive(m pleach.Message, err error) {
	if err != nil { // invalidations may be among what is missing
		i.diverge()
		return
	}
	if m.Topic != Topic || len(m.Data) < nonceSize {
		return
	}
	// Sums do not depend on the order in which instances receive the messages of different members.
	nonce := binary.BigEndian.Uint64(m.Data)
	i.mu.Lock()
	defer i.mu.Unlock()
	for rest := m.Data[nonceSize:]; len(rest) >= bucketSize; rest = rest[bucketSize:] {
		i.stamps[binary.BigEndian.Uint16(rest)%buckets] += nonce
	}
}

// diverge makes all values of this process invalid, also those that it would get from others.
func (i *Invalidations) diverge() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for b := range i.stamps {
		i.stamps[b] = rand.Uint64()
	}
}

// Snapshot implements [pleach.State].
func (i *Invalidations) Snapshot(w io.Writer) error {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return binary.Write(w, binary.BigEndian, i.stamps)
}

// Restore implements [pleach.State].
func (i *Invalidations) Restore(r io.Reader) error {
	stamps := make([]uint64, buckets)
	if err := binary.Read(r, binary.BigEndian, stamps); err != nil {
		return fmt.Errorf("invalidations: %w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stamps = stamps
	return nil
}
