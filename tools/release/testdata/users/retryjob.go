package main

import (
	"fmt"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
	"github.com/retrygo/retry/retryjob/jobtest"
)

func main() {
	engine, err := retryjob.New(retryjob.Options{Policies: retryjob.FromMap(map[string]retry.Policy{"p": {}})})
	fmt.Printf("%T %v %T\n", engine, err, jobtest.Run)
}
