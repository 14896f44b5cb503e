package main

import (
	"fmt"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryworkqueue"
)

func main() { fmt.Println(retryworkqueue.New[string](retry.Policy{})) }
