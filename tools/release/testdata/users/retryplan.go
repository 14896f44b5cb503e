package main

import (
	"fmt"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

func main() { fmt.Println(retryplan.Lint(retry.Standard(), retryplan.Setting{})) }
