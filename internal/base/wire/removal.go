package wire

// Removal tells a process that it is no longer a member, and which process has its rank
// now.
type Removal struct {
	// View is the number of the view that the sender of the Removal has.
	View uint64
	// ID, Address and Incarnation are those of the member that has the rank in that
	// view. They are zero if it has none.
	ID, Address string
	Incarnation uint64
}

// maxText is the longest ID or address, in bytes.
const maxText = 255

func (r *Removal) append(dst []byte) []byte {
	dst = AppendUint64(AppendUint64(dst, r.View), r.Incarnation)
	return AppendBytes(AppendBytes(dst, []byte(r.ID)), []byte(r.Address))
}

func (d *Decoder) removal() Removal {
	r := Removal{View: d.Uint64(), Incarnation: d.Uint64()}
	r.ID, r.Address = string(d.Bytes()), string(d.Bytes())
	return r
}
