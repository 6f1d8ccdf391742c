// Package wire is the format of a connection: frames, the handshake, and the fields
// of which the protocols make their frames.
//
// A connection carries frames: a length, then that many bytes. The first frame in
// each direction is a [Hello], by which the two sides check that they speak the
// same version, belong to the same group and have reached the right member. The
// frames after it are opaque here; [Decoder] and the Append functions encode and
// decode them for the protocols.
//
// The sender of the bytes is unknown until its Hello has been checked, and a bug
// can garble them at any time. So everything that is read has a limit, a length
// field alone allocates nothing, and every decoder is fuzzed.
package wire
