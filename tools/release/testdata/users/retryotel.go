package main

import (
	"context"
	"fmt"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
)

func main() {
	fmt.Println(retryotel.Do(context.Background(), retry.Inline(), retryotel.Options{}, func(context.Context) error { return nil }))
}
