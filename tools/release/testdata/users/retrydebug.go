package main

import (
	"fmt"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrydebug"
)

func main() {
	live := retrydebug.New(retrydebug.Options{})
	fmt.Println(live.Watch(retry.Inline()), live.Snapshot().Version)
}
