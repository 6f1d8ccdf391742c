module github.com/pleach-go/pleach/contrib/arbiter

go 1.26.0

require github.com/pleach-go/pleach v0.2.0
