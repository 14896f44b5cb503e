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
	require.NoError(t, run(t.Context(), &b, false))
	require.Equal(t, string(want), b.String())
}

// Prometheus gets the samples that the first section leaves out.
func TestRawIsTheWholeScrape(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, run(t.Context(), &b, true))
	require.Equal(t, stable(b.String()), section(t, "Metrics"))
	require.Contains(t, b.String(), `retry_run_attempts_bucket{retry_kind="succeeded_with_retry",retry_policy="catalog",le="2"} 0`)
	require.Contains(t, b.String(), `retry_run_attempts_bucket{retry_kind="succeeded_with_retry",retry_policy="catalog",le="3"} 1`)
}

func section(t *testing.T, name string) string {
	text, err := os.ReadFile("testdata/output.txt")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(text), "== "+name+"\n")
	require.True(t, found)
	inside, _, _ := strings.Cut(after, "\n== ")
	return inside
}
