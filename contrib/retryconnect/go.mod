module github.com/retrygo/retry/contrib/retryconnect

go 1.26.0

require (
	connectrpc.com/connect v1.21.1
	github.com/retrygo/retry v0.1.0
	github.com/stretchr/testify v1.12.1
	google.golang.org/protobuf v1.36.11
)

require (
	github.com/retrygo/retry/contrib v0.1.0
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/retrygo/retry => ../..

replace github.com/retrygo/retry/contrib => ..
