package main

import (
	"fmt"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
)

func main() { fmt.Println(retrygrpc.DialOptions(retry.Inline(), retrygrpc.Options{})) }
