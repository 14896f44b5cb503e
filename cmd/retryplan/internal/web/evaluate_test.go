package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrygo/retry/cmd/retryplan/internal/web"
	"github.com/stretchr/testify/require"
)

// A page that asks again and again has no more evaluations under way than there are processors.
func TestEvaluationsWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, taken := web.NewBusyHandler()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		w := httptest.NewRecorder()
		go func() {
			h.ServeHTTP(w, request(`{}`).WithContext(ctx))
			close(done)
		}()
		synctest.Wait()
		select {
		case <-done:
			require.Fail(t, "answered though all slots are taken")
		default:
		}
		stop()
		<-done
		require.Empty(t, w.Body.String(), "nobody reads the answer")
		taken()
		w = httptest.NewRecorder()
		h.ServeHTTP(w, request(`{}`))
		require.Equal(t, http.StatusOK, w.Code)
	})
}

// An attempt that takes as long as its client waits is lost without a trigger as well, and the page says so.
func TestACalmThatLosesIsSaid(t *testing.T) {
	status, a := evaluate(t, time.Minute, map[string]string{"rate": "1", "capacity": "2", "attempt_timeout": "500ms", "deadline": "", "duration": "500ms"})
	require.Equal(t, http.StatusOK, status, "%v", a.Errors)
	require.Equal(t, "lost", a.Verdict.Kind)
	require.Contains(t, a.Verdict.Title, "10 are lost without the trigger as well")
}
