module github.com/retrygo/retry/contrib/retryworkqueue

go 1.25.0

require github.com/retrygo/retry v0.1.0

replace github.com/retrygo/retry => ../..
