package main

import (
	"fmt"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryexport"
	"github.com/retrygo/retry/contrib/retryrpc"
)

func main() {
	fmt.Println(retryexport.Waits(retry.Standard().Delay, 3), retryrpc.Options[uint32]{}.Validate())
}
