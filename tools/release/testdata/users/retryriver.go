package main

import (
	"context"
	"fmt"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

func main() {
	options := retryjob.Options{Policies: retryjob.FromMap(map[string]retry.Policy{"p": {}})}
	queue, err := retryriver.NewSQLite(context.Background(), "jobs.db", options)
	fmt.Println(queue != nil, err)
}
