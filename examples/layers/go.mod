module github.com/retrygo/retry/examples/layers

go 1.26.0

require (
	github.com/jackc/pgx/v5 v5.12.0
	github.com/retrygo/retry v0.1.0
	github.com/retrygo/retry/contrib/retrygrpc v0.1.0
	github.com/retrygo/retry/contrib/retrypgx v0.1.0
	github.com/retrygo/retry/retryplan v0.1.0
	github.com/stretchr/testify v1.12.1
	google.golang.org/grpc v1.85.0
)

require (
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sync v0.23.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261019180522-ce908d29299b // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace (
	github.com/retrygo/retry => ../..
	github.com/retrygo/retry/contrib/retrygrpc => ../../contrib/retrygrpc
	github.com/retrygo/retry/contrib/retrypgx => ../../contrib/retrypgx
	github.com/retrygo/retry/retryplan => ../../retryplan
)
