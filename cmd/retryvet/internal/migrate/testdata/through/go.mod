module example.com/through

go 1.26.0

require (
	example.com/x v0.0.0
	github.com/cenkalti/backoff/v4 v4.3.0
)

replace example.com/x => ./x
