package web_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/retrygo/retry/retryjob"
	"github.com/retrygo/retry/retryjob/jobsui"
	"github.com/stretchr/testify/require"
)

// TestThePageOfJobsHasTheSameStylesheet holds the two copies equal: one stylesheet, so that the pages look alike.
func TestThePageOfJobsHasTheSameStylesheet(t *testing.T) {
	jobs, err := jobsui.New(jobsui.Options{Admin: (*retryjob.Engine)(nil), Access: func(*http.Request) jobsui.Access { return jobsui.ReadOnly }})
	require.NoError(t, err)
	w := httptest.NewRecorder()
	jobs.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/style.css", nil))
	ours, err := os.ReadFile("assets/style.css")
	require.NoError(t, err)
	require.Equal(t, string(ours), w.Body.String(), "copy cmd/retryplan/internal/web/assets/style.css to retryjob/jobsui/assets, or back")
}
