package jobtest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryjob"
	"github.com/retrygo/retry/retryjob/jobtest"
)

func TestMemory(t *testing.T) {
	jobtest.Run(t, jobtest.Harness{
		New: func(t *testing.T, c retryjob.Options) retryjob.Queue {
			engine, err := retryjob.New(c)
			require.NoError(t, err)
			return engine
		},
		Bubble: synctest.Test,
		Unit:   time.Hour,
	})
}
