package p

type Config struct {
	// both, [T](x) and
	// [p.U] | more
	A int
	B int

	C int
}
