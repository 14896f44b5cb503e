package sdks_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// A body that breaks off twice is one run with two events, whose resumptions differ by the name of the policy.
func TestAResumptionIsOneEvent(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 1000)
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"v1"`)
		if asked++; asked > 2 {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
			return
		}
		half := httptest.NewRecorder()
		half.Header().Set("Etag", `"v1"`)
		http.ServeContent(half, r, "", time.Time{}, bytes.NewReader(content))
		for key, values := range half.Header() {
			w.Header()[key] = values
		}
		w.WriteHeader(half.Code)
		_, _ = w.Write(half.Body.Bytes()[:half.Body.Len()/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	s, observe := observed(t)
	rt := &retryhttp.Transport{Resume: true, Policy: retry.Policy{
		Name: "file", Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}, Observe: observe}}

	ctx, span := s.traces.Tracer("test").Start(t.Context(), "outer")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	resp, err := rt.RoundTrip(req)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, content, body)
	span.End()

	var events []string
	for _, e := range s.span("outer").Events {
		values := set(e.Attributes)
		events = append(events, e.Name+" "+values["retry.policy"].(string)+" "+values["error.type"].(string))
	}
	const one = "retry.attempt.failed file body body_truncated"
	require.Equal(t, []string{one, one}, events)
	require.Equal(t, map[string]float64{
		"retry.kind=succeeded_without_retry,retry.policy=file,retry.status=succeeded":   1,
		"retry.kind=succeeded_with_retry,retry.policy=file body,retry.status=succeeded": 2,
	}, s.values("retry.runs"))
}
