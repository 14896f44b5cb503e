module github.com/retrygo/retry/contrib/retryfailsafe

go 1.25.0

require (
	github.com/failsafe-go/failsafe-go v0.9.6 // the first with DeferCancel
	github.com/retrygo/retry v0.1.0
	github.com/retrygo/retry/contrib v0.1.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/bits-and-blooms/bitset v1.24.4 // indirect
	github.com/influxdata/tdigest v0.0.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/retrygo/retry => ../..

replace github.com/retrygo/retry/contrib => ..
