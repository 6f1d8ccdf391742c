module github.com/pleach-go/pleach/examples

go 1.26.0

require (
	github.com/mailgun/groupcache/v2 v2.6.0
	github.com/pleach-go/pleach v0.2.0
	github.com/pleach-go/pleach/agent v0.2.0
	github.com/pleach-go/pleach/contrib/groupcache v0.2.0
	github.com/pleach-go/pleach/contrib/grpc v0.2.0
	github.com/pleach-go/pleach/prom v0.2.0
	github.com/prometheus/client_golang v1.24.1
	google.golang.org/grpc v1.85.0
)

require (
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/golang/protobuf v1.5.4 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_model v0.6.2 // indirect
	github.com/prometheus/common v0.70.1 // indirect
	github.com/prometheus/procfs v0.21.1 // indirect
	github.com/segmentio/fasthash v1.0.3 // indirect
	github.com/sirupsen/logrus v1.9.2 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
