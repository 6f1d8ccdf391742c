//go:build unix

package detect

import (
	"fmt"
	"io"
	"net"
	"os"
)

// childRole makes the test binary a process that listens, to be killed and stopped.
const childRole = "PLEACH_DETECT_CHILD"

// runListener accepts connections and sends nothing, like a busy member.
func runListener() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("address", ln.Addr())
	go func() {
		var open []net.Conn
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			open = append(open, conn)
			fmt.Println("connections", len(open))
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin) // It ends with its parent.
}
