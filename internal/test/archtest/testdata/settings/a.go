package p

type Config struct {
	// both, [T](x) and
	// [p.U] | more
	A int
	B int

	C int

	// D is a time. If zero, 1.5 s, or more. If negative, none.
	D int

	// E does. If false, it does not.
	E bool
}
