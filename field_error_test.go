package retry_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

func TestFieldErrors(t *testing.T) {
	t.Run("none is nil", func(t *testing.T) {
		var bad retry.FieldErrors
		bad.Append(nil)
		require.NoError(t, bad.Err())
		require.True(t, bad.Err() == nil)
	})
	t.Run("one line, and a package is named when it changes", func(t *testing.T) {
		var bad retry.FieldErrors
		bad.Refuse("Policy.TTL", -time.Second, "is negative")
		bad.Refuse("Policy.Cap", time.Second, "is below", "Base", 5*time.Minute)
		bad.Refuse("retryhttp.Transport.BufferBody", -1, "is negative")
		bad.Refuse("retryhttp.Transport.Name", "a\nb", "has a line break")
		bad.Refuse("retry.Backoff.Factor", 0.5, "is below 1")
		require.EqualError(t, bad.Err(), "retry: Policy.TTL -1s is negative; Policy.Cap 1s is below Base 5m; "+
			"retryhttp: Transport.BufferBody -1 is negative; Transport.Name a; b has a line break; retry: Backoff.Factor 0.5 is below 1")
		var texts []string
		for _, err := range bad.Unwrap() {
			texts = append(texts, err.Error())
		}
		require.Equal(t, []string{"retry: Policy.TTL -1s is negative", "retry: Policy.Cap 1s is below Base 5m",
			"retryhttp: Transport.BufferBody -1 is negative", "retryhttp: Transport.Name a; b has a line break",
			"retry: Backoff.Factor 0.5 is below 1"}, texts)
	})
	t.Run("what another Validate has found is added, each field by itself", func(t *testing.T) {
		var bad retry.FieldErrors
		bad.Append(retry.Policy{TTL: -1, MaxAttempts: -2}.Validate())
		bad.Append(retry.Policy{}.Validate())
		bad.Append(fmt.Errorf("config.json:\n%w", io.ErrUnexpectedEOF))
		require.Len(t, bad, 3)
		require.EqualError(t, bad.Err(),
			"retry: Policy.MaxAttempts -2 is below -1, which is Unlimited; Policy.TTL -1ns is negative; config.json:; unexpected EOF")
		require.ErrorIs(t, bad.Err(), io.ErrUnexpectedEOF)
	})
	t.Run("the same text twice is there twice", func(t *testing.T) {
		var bad retry.FieldErrors
		bad.Append(io.EOF)
		bad.Append(io.EOF)
		require.EqualError(t, bad.Err(), "EOF; EOF")
	})
	t.Run("errors.As finds the first bad field of any package", func(t *testing.T) {
		var bad retry.FieldErrors
		bad.Append(io.EOF)
		bad.Refuse("retryjob.Options.Workers", -3, "is negative")
		bad.Refuse("retryjob.Options.Lease", time.Duration(0), "is not positive")
		field := must[*retry.FieldError](t, fmt.Errorf("start: %w", bad.Err()))
		require.Equal(t, &retry.FieldError{Package: "retryjob", Field: "Options.Workers", Value: "-3", Rule: "is negative"}, field)
		var all retry.FieldErrors
		require.True(t, errors.As(bad.Err(), &all))
		require.Len(t, all, 3)
	})
	t.Run("the line of a document is named", func(t *testing.T) {
		e := retry.FieldError{Package: "retryconf", Field: "base", Value: "30", Rule: "is a number", Line: 4}
		require.EqualError(t, &e, "retryconf: line 4: base 30 is a number")
	})
}
