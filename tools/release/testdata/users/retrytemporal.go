package main

import (
	"fmt"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrytemporal"
)

func main() { fmt.Println(retrytemporal.Policy(retry.Standard())) }
