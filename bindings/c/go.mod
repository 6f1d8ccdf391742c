module github.com/pleach-go/pleach/bindings/c

go 1.26

require github.com/pleach-go/pleach v0.0.0-00010101000000-000000000000

replace github.com/pleach-go/pleach => ../..
