module github.com/pleach-go/pleach/bindings/c

go 1.26.0

require (
	github.com/pleach-go/pleach v0.2.0
	github.com/pleach-go/pleach/agent v0.2.0
)
