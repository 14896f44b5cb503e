module github.com/retrygo/retry/contrib/retryotel

go 1.25.0

require (
	github.com/retrygo/retry v0.1.0
	github.com/retrygo/retry/contrib v0.1.0
	github.com/retrygo/retry/retryjob v0.1.0
	go.opentelemetry.io/otel v1.38.0 // 1.35.0 names the histogram of otelhttp otherwise
	go.opentelemetry.io/otel/metric v1.38.0
	go.opentelemetry.io/otel/trace v1.38.0
)

require (
	github.com/go-logr/logr v1.4.3 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	go.opentelemetry.io/auto/sdk v1.1.0 // indirect
)

replace github.com/retrygo/retry => ../..

replace github.com/retrygo/retry/contrib => ..

replace github.com/retrygo/retry/retryjob => ../../retryjob
