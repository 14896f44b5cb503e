package main

import (
	"fmt"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryaws"
)

func main() { fmt.Println(retryaws.Middleware(retry.Inline())) }
