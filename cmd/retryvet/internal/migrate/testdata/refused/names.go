package refused

import (
	. "github.com/avast/retry-go/v4"
)

func dotted() error {
	return Do(work, DelayType(FixedDelay)) // want `imported by a dot`
}
