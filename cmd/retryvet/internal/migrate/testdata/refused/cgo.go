package refused

// int one() { return 1; }
import "C"

import "github.com/cenkalti/backoff/v4" // want `the file uses cgo`

func one() error { println(C.one()); return backoff.Retry(work, backoff.NewConstantBackOff(0)) }
