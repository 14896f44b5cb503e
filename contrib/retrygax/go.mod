module github.com/retrygo/retry/contrib/retrygax

go 1.25.0

require (
	github.com/googleapis/gax-go/v2 v2.15.0 // 2.14.2 does not repeat a 503 of a REST client
	github.com/retrygo/retry v0.1.0
	github.com/retrygo/retry/contrib v0.1.0
	github.com/stretchr/testify v1.12.1
	google.golang.org/api v0.242.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20250603155806-513f23925822
	google.golang.org/grpc v1.73.0
	google.golang.org/protobuf v1.36.6
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/net v0.41.0 // indirect
	golang.org/x/sys v0.33.0 // indirect
	golang.org/x/text v0.26.0 // indirect
)

replace github.com/retrygo/retry => ../..

replace github.com/retrygo/retry/contrib => ..
