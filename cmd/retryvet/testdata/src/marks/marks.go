package marks

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/retrygo/retry"
)

func call(context.Context) error   { return nil }
func fetch() (status int, _ error) { return 0, nil }

func marksNil() error {
	status, err := fetch()
	if err != nil {
		return err
	}
	if status == 404 {
		return retry.Permanent(err) // want `err is nil here, so that retry.Permanent\(err\) is nil too and the attempt succeeds: create an error`
	}
	switch status {
	case 429:
		return retry.After(time.Second, err) // want `err is nil here`
	case 500:
		_, err = fetch()
		return retry.Permanent(err)
	}
	return retry.Permanent(err)
}

func marksSomething() error {
	status, err := fetch()
	if err != nil && status == 0 {
		return err
	}
	if status == 404 {
		return retry.Permanent(err)
	}
	if err != nil {
		status = 1
	}
	if status == 404 {
		return retry.Permanent(err)
	}
	if err != nil {
		return retry.Permanent(err)
	}
	return nil
}

func drops(ctx context.Context, b wait.Backoff) (err error) {
	retry.Do(ctx, retry.Inline(), func(context.Context) error { return use() }) // want `the error of retry.Do is dropped, so that giving up looks like a success`
	_ = wait.ExponentialBackoff(b, func() (bool, error) {                       // want `the error of wait.ExponentialBackoff is dropped`
		return use() == nil, nil
	})
	_ = wait.ExponentialBackoff(b, func() (bool, error) {
		err = use()
		return err == nil, nil
	})
	return err
}

func bestEffort(ctx context.Context) {
	_ = retry.Do(ctx, retry.Inline(), func(context.Context) error { return use() })
}

func use() error { return nil }
