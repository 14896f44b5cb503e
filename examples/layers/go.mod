module github.com/retrygo/retry/examples/layers

go 1.26.0

require (
	connectrpc.com/connect v1.21.1
	github.com/retrygo/retry v0.1.0
	github.com/retrygo/retry/contrib/retryconnect v0.1.0
	github.com/retrygo/retry/contrib/retrygrpc v0.1.0
	github.com/retrygo/retry/retryplan v0.1.0
	github.com/stretchr/testify v1.12.1
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/retrygo/retry/contrib v0.1.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261019180522-ce908d29299b // indirect
)

replace (
	github.com/retrygo/retry => ../..
	github.com/retrygo/retry/contrib/retryconnect => ../../contrib/retryconnect
	github.com/retrygo/retry/contrib/retrygrpc => ../../contrib/retrygrpc
	github.com/retrygo/retry/retryplan => ../../retryplan
)

replace github.com/retrygo/retry/contrib => ../../contrib
