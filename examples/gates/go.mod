module github.com/retrygo/retry/examples/gates

go 1.26.0

require (
	github.com/failsafe-go/failsafe-go v0.9.8
	github.com/retrygo/retry v0.1.0
	github.com/sony/gobreaker/v2 v2.4.0
	github.com/stretchr/testify v1.12.1
	golang.org/x/time v0.16.0
)

require (
	github.com/bits-and-blooms/bitset v1.24.4 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/retrygo/retry => ../..
