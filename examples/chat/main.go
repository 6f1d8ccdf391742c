// Chat is the smallest useful group: every member says something every second,
// and prints what the others say. Run eight of them, and kill one:
//
//	pleach run -n 8 --kill 3@2500ms -- go run ./examples/chat
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/pleach-go/pleach"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	group, err := pleach.Start(ctx, pleach.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()

	go func() {
		for i := range 4 {
			time.Sleep(time.Second)
			_ = group.Broadcast(ctx, fmt.Appendf(nil, "hello %d from rank %d", i, group.Rank()))
		}
	}()
	for message := range group.Messages(ctx) {
		fmt.Printf("%s\n", message.Data)
	}
}
