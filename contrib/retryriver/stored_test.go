package retryriver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// TestANewRecordIsReadWithoutParsing: on PostgreSQL parsing took a tenth of this process's time for a job.
func TestANewRecordIsReadWithoutParsing(t *testing.T) {
	a := newAdapter(t)
	client, err := retryriver.NewClient(a, riverpgxv5.New(newPostgres(t)), &river.Config{})
	require.NoError(t, err)
	for _, job := range []retryjob.Job{{}, {ID: "own id"}, {Payload: []byte("7"), Queue: "other", Tags: []string{"tag"}}} {
		job.Kind, job.Policy = "mail", "quick"
		_, err = retryriver.NewAdmin(a, client).Enqueue(t.Context(), job)
		require.NoError(t, err)
	}
	list, err := client.JobList(t.Context(), river.NewJobListParams())
	require.NoError(t, err)
	require.Len(t, list.Jobs, 3)
	for _, row := range list.Jobs {
		require.True(t, retryriver.Shortest(row.Metadata), "%s", row.Metadata)
		require.NoError(t, retryriver.InfoOf(a, row).Validate())
	}
}

// TestARecordThatIsNotParsedIsTheSame: a space before the metadata makes it be parsed.
func TestARecordThatIsNotParsedIsTheSame(t *testing.T) {
	a := newAdapter(t)
	info := func(key []byte, metadata string) *retryjob.Info {
		now := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
		return retryriver.InfoOf(a, &rivertype.JobRow{
			ID: 7, Kind: "mail", CreatedAt: now, ScheduledAt: now, State: rivertype.JobStateAvailable,
			Metadata: []byte(metadata), UniqueKey: key,
		})
	}
	const asStored = `{"retryjob": [{"job": "%s", "policy": "%s"}]}`
	for _, form := range []string{asStored, strings.ReplaceAll(asStored, " ", "")} {
		for _, id := range []string{"j", "two words", `","policy":"`, `", "policy": "`, `\`, "é", "a\nb", "\x7f", `{"job":1}`, `a", "policy": "b`, `"}]}`} {
			for _, metadata := range []string{
				fmt.Sprintf(form, id, "quick"), fmt.Sprintf(form, id, ""), fmt.Sprintf(form, quoted(id), "quick"),
				fmt.Sprintf(form, "j", quoted(id)), fmt.Sprintf(form, "j", id), fmt.Sprintf(`{"retryjob": "%s"}`, id), fmt.Sprintf(`{"retryjob":"%s"}`, quoted(id)),
			} {
				for cut := range metadata { // and each text without one character
					for _, text := range []string{metadata, metadata[:cut] + metadata[cut+1:]} {
						for _, key := range [][]byte{retryriver.KeyOf("j"), retryriver.KeyOf(id), []byte("retryjob0123456789abcdef")} {
							require.Equal(t, info(key, " "+text), info(key, text), "%s", text)
						}
					}
				}
			}
		}
	}
	require.True(t, retryriver.Shortest(fmt.Appendf(nil, asStored, "two words", "")))
	require.True(t, retryriver.Shortest([]byte(`{"retryjob": "two words"}`)))
}

// quoted returns a text as it is within the quotation marks of JSON.
func quoted(text string) string {
	marshaled, _ := json.Marshal(text)
	return string(marshaled[1 : len(marshaled)-1])
}
