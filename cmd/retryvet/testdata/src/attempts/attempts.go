package attempts

import (
	"context"
	"errors"
	h "net/http"

	"github.com/retrygo/retry"
)

type page struct{}

func send(context.Context) (*page, error)                 { return nil, nil }
func ping(context.Context) error                          { return nil }
func header(context.Context) (map[string]h.Header, error) { return nil, nil }
func set(*error)                                          {}

func hidden(ctx context.Context) (*page, error) {
	var resp *page
	var err error
	for ctx := range retry.Attempts(ctx, retry.Inline(), &err) {
		resp, err := send(ctx) // want `this err is another variable than that of retry.Attempts, so the loop never makes a second turn`
		_, _ = resp, err
	}
	return resp, err
}

func hiddenInAnIf(ctx context.Context) (err error) {
	for ctx := range retry.Attempts(ctx, retry.Inline(), &err) {
		if err := ping(ctx); err != nil { // want `this err is another variable`
			continue
		}
	}
	return err
}

func withANewName(ctx context.Context) (err error) {
	for ctx := range retry.Attempts(ctx, retry.Inline(), &err) {
		resp, err := send(ctx) // want `this err is another variable`
		_, _ = resp, err
	}
	return err
}

func fromAnotherPackage(ctx context.Context) (err error) {
	for ctx := range retry.Attempts(ctx, retry.Inline(), &err) {
		if ctx != nil {
			byName, err := header(ctx) // want `this err is another variable`
			_, _ = byName, err
		}
	}
	return err
}

func ofAnotherType(ctx context.Context) (resp int, err error) {
	for ctx := range retry.Attempts(ctx, retry.Inline(), &err) {
		resp, err := send(ctx) // want `this err is another variable`
		_, _ = resp, err
	}
	return resp, err
}

func inTheInit(ctx context.Context) (err error) {
	for ctx := range retry.Attempts(ctx, retry.Inline(), &err) {
		if resp, err := send(ctx); err == nil { // want `this err is another variable`
			_ = resp
		}
	}
	return err
}

func never(ctx context.Context) (err error) {
	for ctx := range retry.Attempts(ctx, retry.Inline(), &err) { // want `the body never sets err, so the loop never makes a second turn`
		_ = ping(ctx)
	}
	return err
}

func onlyReturns(ctx context.Context) (err error) {
	for ctx := range retry.Attempts(ctx, retry.Inline(), &err) { // want `the body never sets err`
		return ping(ctx)
	}
	return err
}

func ignored(ctx context.Context) (err error) {
	//retryvet:ignore attempts it shows the trap
	for ctx := range retry.Attempts(ctx, retry.Inline(), &err) {
		_ = ping(ctx)
	}
	return err
}

// What follows is right, or can be.

func assigned(ctx context.Context) (resp *page, err error) {
	for ctx := range retry.Attempts(ctx, retry.Inline(), &err) {
		resp, err = send(ctx)
	}
	return resp, err
}

func hiddenAndAssigned(ctx context.Context) (err error) {
	for ctx := range retry.Attempts(ctx, retry.Inline(), &err) {
		if err := ping(ctx); err != nil {
			continue
		}
		err = errors.New("not yet")
	}
	return err
}

func byAFunction(ctx context.Context) (err error) {
	try := func() { err = ping(ctx) }
	for range retry.Attempts(ctx, retry.Inline(), &err) {
		try()
	}
	for range retry.Attempts(ctx, retry.Inline(), &err) {
		func() { err = ping(ctx) }()
	}
	return err
}

func byAddress(ctx context.Context) (err error) {
	for range retry.Attempts(ctx, retry.Inline(), &err) {
		set(&err)
	}
	return err
}

type loop struct{ err error }

func (l *loop) field(ctx context.Context) {
	for ctx := range retry.Attempts(ctx, retry.Inline(), &l.err) {
		_ = ping(ctx)
	}
}

func inside(ctx context.Context) func() error {
	return func() (err error) {
		for ctx := range retry.Attempts(ctx, retry.Inline(), &err) {
			err = ping(ctx)
		}
		return err
	}
}
