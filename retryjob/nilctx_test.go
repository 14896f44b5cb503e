package retryjob_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

func TestANilContextIsAnError(t *testing.T) {
	var none context.Context
	running, free := make(chan bool), make(chan bool)
	e := open(t, retry.Policy{}, func(context.Context, retryjob.Job) error {
		running <- true
		<-free
		return nil
	})
	job := retryjob.Job{ID: "one", Kind: "work", Policy: "p"}
	h, err := e.Enqueue(t.Context(), job)
	require.NoError(t, err)
	<-running
	for name, call := range map[string]func() error{
		"Enqueue":        func() error { _, err := e.Enqueue(none, job); return err },
		"EnqueueMany":    func() error { _, err := e.EnqueueMany(none, []retryjob.Job{job}); return err },
		"EnqueueMany, 0": func() error { _, err := e.EnqueueMany(none, nil); return err },
		"Get":            func() error { _, err := e.Get(none, "one"); return err },
		"Wait":           func() error { _, err := e.Wait(none, "one"); return err },
		"Handle.Inspect": func() error { _, err := h.Inspect(none); return err },
		"Handle.Wait":    func() error { _, err := h.Wait(none); return err },
		"Count":          func() error { _, err := e.Count(none, retryjob.Filter{}); return err },
		"Cancel":         func() error { return e.Cancel(none, "one") },
		"Replay":         func() error { return e.Replay(none, "one") },
		"ReplayAll":      func() error { _, err := e.ReplayAll(none, retryjob.Filter{}); return err },
		"Purge":          func() error { _, err := e.Purge(none, retryjob.Filter{}); return err },
		"Shutdown":       func() error { _, err := e.Shutdown(none); return err },
		"List": func() (err error) {
			for _, err = range e.List(none, retryjob.Filter{}) {
			}
			return err
		},
	} {
		require.EqualError(t, call(), "retryjob: ctx is nil", name)
	}
	close(free)
	i, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, retryjob.Succeeded, i.Status)
	shutdown(t, e)
}
