package fault_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport/fault"
	"github.com/pleach-go/pleach/transport/mem"
)

// printer is a handler that prints the frames it gets, and counts them down.
type printer struct{ awaited *sync.WaitGroup }

func (p printer) Receive(from protocol.Rank, frame []byte) {
	fmt.Printf("from %d: %s\n", from, frame)
	p.awaited.Done()
}
func (printer) Up(protocol.Rank, uint64)  {}
func (printer) Down(protocol.Rank, error) {}
func (printer) Writable(protocol.Rank)    {}

// A cut is made by hand, and a script heals it after a while.
func Example() {
	inner := mem.NewNetwork(2, mem.Config{})
	n := fault.New(42, fault.Config{})
	a, b := n.Wrap(0, inner.Member(0)), n.Wrap(1, inner.Member(1))
	defer a.Close()
	defer b.Close()
	var awaited sync.WaitGroup
	if err := errors.Join(a.Start(printer{&awaited}), b.Start(printer{&awaited})); err != nil {
		log.Fatal(err)
	}

	n.Do(fault.Cut{On: fault.OneWay(0, 1)})
	a.Send(1, []byte("lost"))

	script, err := fault.Parse(`
		duplicate 100%        # from now on
		at 10ms heal`)
	if err != nil {
		log.Fatal(err)
	}
	if err := n.Run(context.Background(), script); err != nil {
		log.Fatal(err)
	}
	awaited.Add(2)
	a.Send(1, []byte("twice"))
	awaited.Wait()
	fmt.Println("cut:", n.Stats().Cut)
	// Output:
	// from 0: twice
	// from 0: twice
	// cut: 1
}
