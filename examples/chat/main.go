// Chat is a small group: every member broadcasts a message every second, four times, and then
// prints the number of messages it received, in total and from each rank. Run eight members and
// kill one:
//
//	go build -o bin/ ./agent/cmd/pleach ./examples/chat
//	bin/pleach run -n 8 --kill 3@2500ms bin/chat
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
	group, err := pleach.Start(ctx, pleach.Config{}) // rank and addresses come from pleach run
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()

	go func() {
		for range 4 {
			time.Sleep(time.Second)
			_ = group.Broadcast(ctx, []byte("hello"))
		}
	}()
	total, byRank := 0, make([]int, group.Size())
	for message, err := range group.Messages(ctx) {
		if err != nil {
			log.Print(err)
			continue
		}
		total++
		byRank[message.From]++
	}
	fmt.Println("received", total, "messages:", byRank)
}
