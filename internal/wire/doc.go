// Package wire is what goes over a connection, whatever it means to those above.
//
// A connection carries frames: a length, then that many bytes. The first frame
// each way is a [Hello], by which the two sides make sure that they speak the
// same version, belong to the same group and have reached whom they wanted. The
// frames after it are opaque here; [Decoder] and the Append functions help
// those above to write and read them.
//
// Bytes come from strangers until a Hello has been checked, and a bug can garble
// them at any time. So everything that is read has a limit, nothing is allocated
// because a length field says so, and every decoder is fuzzed.
package wire
