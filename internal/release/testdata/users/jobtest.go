package main

import (
	"fmt"

	"github.com/retrygo/retry/retryjob/jobtest"
)

func main() { fmt.Printf("%T\n", jobtest.Run) }
