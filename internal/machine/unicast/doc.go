// Package direct is what members tell single members: messages of their programs, and
// requests with replies. It stands on a reliable channel between every two members (see
// package p2p), and adds what a channel does not have:
//
//   - Flow control by the receiving program. A member has at most a window of bytes on
//     their way to one program. The receiver returns credit as its program takes messages
//     (credit-based flow control: Kung, Blackwell & Chapman 1994). Requests and replies
//     need no credit, so that a program that does not receive its messages still gets its
//     replies. Their numbers are limited instead.
//   - Requests that end. A request is answered, canceled, or fails as soon as a view
//     without its receiver is installed. So it needs no timeout.
//
// A [Machine] is one member's side, a state machine without I/O.
//
// # Driving a Machine
//
// In: [Machine.Install] for the members, [Machine.Receive] for what the channels deliver,
// and the calls of the program. Out: [Config.Post] for what goes to the channels,
// [Machine.Deliver] for what goes to the program, and the functions in [Config] and in
// requests. All of them are called within the machine's methods, and must not call the
// machine. A Machine is not safe for concurrent use.
package unicast
