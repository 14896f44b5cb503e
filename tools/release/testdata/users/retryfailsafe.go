package main

import (
	"fmt"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryfailsafe"
)

func main() { fmt.Println(retryfailsafe.Policy[string](retry.Inline())) }
