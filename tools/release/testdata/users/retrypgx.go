package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrypgx"
)

func main() {
	fmt.Println(retrypgx.Tx(context.Background(), nil, retry.Policy{}, nil, func(context.Context, pgx.Tx) error { return nil }))
}
