module github.com/pleach-go/pleach/contrib/groupcache

go 1.26.0

require (
	github.com/mailgun/groupcache/v2 v2.6.0
	github.com/pleach-go/pleach v0.2.0
)

require (
	github.com/golang/protobuf v1.5.4 // indirect
	github.com/segmentio/fasthash v1.0.3 // indirect
	github.com/sirupsen/logrus v1.9.2 // indirect
	golang.org/x/sys v0.28.0 // indirect
	google.golang.org/protobuf v1.35.2 // indirect
)
