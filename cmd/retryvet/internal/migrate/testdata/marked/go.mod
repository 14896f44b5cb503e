module example.com/forms

go 1.26.0

require (
	github.com/avast/retry-go/v4 v4.7.0
	github.com/cenkalti/backoff/v4 v4.3.0
	github.com/cenkalti/backoff/v5 v5.0.3
	github.com/sethvargo/go-retry v0.5.0
)

require github.com/stretchr/testify v1.12.1 // indirect
