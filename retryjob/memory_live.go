package retryjob

import (
	"context"

	"github.com/retrygo/retry/internal/jobkey"
)

// live is the context of an attempt. Each attempt has its own, since a handler may keep it.
type live struct {
	context.Context
	cancel context.CancelCauseFunc
	start  instant
	info   AttemptInfo
}

func (l *live) Value(key any) any {
	if key == (jobkey.Handler{}) {
		return &l.info
	}
	return l.Context.Value(key)
}
