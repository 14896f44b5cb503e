package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheOutputIsTheSameEachTime(t *testing.T) {
	want, err := os.ReadFile("testdata/output.txt")
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, run(t.Context(), &b))
	require.Equal(t, string(want), b.String())
}

// Prometheus gets the samples that the first section leaves out.
func TestTheWholeScrape(t *testing.T) {
	made, err := newTelemetry()
	require.NoError(t, err)
	defer made.close()
	require.NoError(t, makeCalls(t.Context(), made))
	scraped, err := made.scrape(t.Context())
	require.NoError(t, err)
	require.Equal(t, stable(scraped), section(t, "Metrics"))
	require.Contains(t, scraped, `retry_run_attempts_bucket{retry_kind="succeeded_with_retry",retry_policy="catalog",le="2"} 0`)
	require.Contains(t, scraped, `retry_run_attempts_bucket{retry_kind="succeeded_with_retry",retry_policy="catalog",le="3"} 1`)
}

func section(t *testing.T, name string) string {
	text, err := os.ReadFile("testdata/output.txt")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(text), "== "+name+"\n")
	require.True(t, found)
	inside, _, _ := strings.Cut(after, "\n== ")
	return inside
}
