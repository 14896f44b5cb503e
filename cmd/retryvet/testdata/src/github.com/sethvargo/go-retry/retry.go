package retry

import "context"

type Backoff interface{ Next() (int, bool) }

func NewConstant(int) Backoff { return nil }

func RetryableError(err error) error { return err }

func Do(ctx context.Context, b Backoff, f func(context.Context) error) error { return nil }
