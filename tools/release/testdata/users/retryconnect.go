package main

import (
	"fmt"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryconnect"
)

func main() { fmt.Println(retryconnect.NewInterceptor(retry.Inline(), retryconnect.Options{})) }
