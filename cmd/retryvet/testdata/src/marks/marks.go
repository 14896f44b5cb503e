package marks

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/retrygo/retry"
)

func call(context.Context) error   { return nil }
func fetch() (status int, _ error) { return 0, nil }

func compares(ctx context.Context, p retry.Policy) error {
	err := retry.Do(ctx, p, call)
	if err == io.EOF { // want `err == io.EOF is always false, since retry.Do wraps the last error: use errors.Is\(err, io.EOF\)`
		return nil
	}
	if context.Canceled != err { // want `context.Canceled != err is always true, since retry.Do wraps the last error: use !errors.Is\(err, context.Canceled\)`
		return errors.New("x")
	}
	if _, ok := err.(*net.OpError); ok { // want `err.\(\*net.OpError\) never succeeds, since retry.Do wraps the last error: use errors.As`
		return nil
	}
	if _, ok := err.(*retry.Error); ok || err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	err = call(ctx)
	if err == io.EOF {
		return nil
	}
	if ctx.Err() == nil {
		err = retry.Do(ctx, p, call)
	}
	if err == io.EOF {
		return nil
	}
	return err
}

func inside(ctx context.Context, p retry.Policy) error {
	var err error
	err = retry.Do(ctx, p, func(ctx context.Context) error {
		err := call(ctx)
		if err == io.EOF {
			return nil
		}
		return err
	})
	return err
}

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
