package retryotel

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// The types that say nothing of what is wrong: a mark of retry, and what fmt.Errorf makes of one %w.
var (
	markType = reflect.TypeOf(retry.Permanent(errors.ErrUnsupported))
	wrapType = reflect.TypeOf(fmt.Errorf("%w", errors.ErrUnsupported))
)

// errorType returns error.type for what an attempt failed with: what an ErrorType method in err's chain says; of an HTTP
// attempt the status, "503", or retryhttp's Reason, "conn_refused"; "timeout"; "canceled"; otherwise the Go type below marks
// and fmt.Errorf. Nil, which only an Event made by hand has, is "_OTHER".
func errorType(err error) string {
	if err == nil {
		return other
	}
	return answered(err, typeOf)
}

// answered returns what ask says of err, and err's Go type if a method of err panics: that must not end a run that is
// only looked at.
func answered(err error, ask func(error) string) (text string) {
	defer func() {
		if recover() != nil {
			text = goType(err)
		}
	}()
	return ask(err)
}

func typeOf(err error) string {
	if typed, ok := errors.AsType[interface {
		error
		ErrorType() string
	}](err); ok {
		if text := typed.ErrorType(); text != "" {
			return valid(text)
		}
	}
	if failed, ok := errors.AsType[*retryhttp.AttemptError](err); ok && failed != nil {
		if failed.StatusCode != 0 {
			return strconv.Itoa(failed.StatusCode)
		}
		return string(failed.Reason)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	default:
		return semconv.ErrorType(bare(err)).Value.AsString()
	}
}

// timedOut reports whether err says that a deadline has passed; retry.ErrAttemptTimeout and net timeouts do.
func timedOut(err error) (yes bool) {
	defer func() { _ = recover() }() // as in answered; who panics has said nothing
	return errors.Is(err, context.DeadlineExceeded)
}

// bare returns err without marks and what fmt.Errorf put around it.
func bare(err error) error {
	for {
		t := reflect.TypeOf(err)
		if t != markType && t != wrapType {
			return err
		}
		inner := errors.Unwrap(err)
		if inner == nil { // fmt.Errorf of a nil
			return err
		}
		err = inner
	}
}
