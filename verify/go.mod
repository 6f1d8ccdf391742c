module github.com/pleach-go/pleach/verify

go 1.26.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/pleach-go/pleach v0.0.0-00010101000000-000000000000
)

replace github.com/pleach-go/pleach => ../
