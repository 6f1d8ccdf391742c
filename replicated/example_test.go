package replicated_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/replicated"
)

// counter is a state machine: a command adds to it, and its result is the sum.
type counter struct{ sum int }

func (c *counter) Apply(command []byte) []byte {
	n, _ := strconv.Atoi(string(command))
	c.sum += n
	return []byte(strconv.Itoa(c.sum))
}

func (c *counter) Snapshot(w io.Writer) error { return json.NewEncoder(w).Encode(c.sum) }
func (c *counter) Restore(r io.Reader) error  { return json.NewDecoder(r).Decode(&c.sum) }

// A counter that two processes keep. Both add to it, and no addition is lost.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	seeds := []string{}
	for _, id := range []string{"a", "b"} {
		c := new(counter)
		r, err := replicated.Join(ctx, replicated.Config{
			Group:    pleach.Config{ID: id},
			Machines: map[string]replicated.Machine{"visits": c},
		}, seeds...)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer r.Close()
		seeds = append(seeds, r.Group().Self().Address)
		sum, err := r.Propose(ctx, "visits", []byte("5"))
		fmt.Println(string(sum), err)
		err = r.Read(ctx, func() { fmt.Println("read", c.sum) })
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 5 <nil>
	// read 5
	// 10 <nil>
	// read 10
}
