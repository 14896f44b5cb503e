package main

import (
	"fmt"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygax"
)

func main() { fmt.Println(retrygax.Option(retry.Inline())) }
