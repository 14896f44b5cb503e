package retryriver_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// foreign is the metadata of plain jobs that an outsider has chosen and that a program without an Adapter has inserted.
var foreign = []string{
	`{"RetryJob":[{"status":"succeeded"}]}`,
	`{"retryJob":"x"}`,
	`{"RETRYJOB":[{"v":1,"job":"j","policy":"quick","first":"2026-01-01T00:00:00Z","status":"canceled","ended":"2026-01-01T00:00:00Z"}]}`,
	`{"retryjob":[{"v":1,"job":"j","policy":"quick","first":"2026-01-01T00:00:00Z","status":"succeeded","ended":"2026-01-01T00:00:00Z"}]}`,
	`{"retryjob":"x"}`,
	`{"retryjob":{"status":1}}`,
	`{"retryjob":[]}`,
	`{"retryjob":[1]}`,
	`{"retryjob":[{"changed":"x","attempts":"y","seen":{},"status":7,"policy":[]}]}`,
	`{"retryjob":[{"changed":1e300,"attempts":-1.5,"seen":99999999999999999999}]}`,
	`{"retryjob":null,"retryjob_late":"x","snoozes":"y","retryjob_attempt":7}`,
	`{"retryjob_late":[{"id":"x","end":"never"}]}`,
	`{"snoozes":{"a":1}}`,
	`{"Snoozes":7,"RetryJob_Late":[{}]}`,
	`{"retryjob":["x"]}`,
	`{"retryjob":[null]}`,
	`{"retryjob":[[{"job":"j"}]]}`,
	`{"retryjob":[{"job":{},"policy":7,"status":[],"reason":{}}]}`,
	`{"retryjob":[{"job":"` + incompressible + `","policy":"` + incompressible + `","reason":"` + incompressible + `","status":"` + incompressible + `"}]}`,
	`{"retryjob":[{"job":"j","status":"dead_letter","reason":"` + incompressible + `","changed":-1e300}]}`,
}

// incompressible is longer than the maximum length of an index entry.
var incompressible = func() string {
	random := make([]byte, 5000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	return hex.EncodeToString(random)
}()

// TestForeignMetadataBreaksNoIndex: in no state does an outsider's metadata stop a job from being written, listed or
// removed, with a unique key or without.
func TestForeignMetadataBreaksNoIndex(t *testing.T) {
	crowds(t, t.Run, func(t *testing.T, c *crowd) {
		for n, metadata := range foreign {
			for m, state := range []string{"available", "running", "completed", "cancelled", "discarded"} {
				finalized := "NULL"
				if m > 1 {
					finalized = "CURRENT_TIMESTAMP"
				}
				for _, key := range []string{"NULL", fmt.Sprintf("decode('%064x', 'hex')", n*10+m)} {
					if c.onSQLite() {
						key = strings.NewReplacer("decode(", "unhex(", ", 'hex'", "").Replace(key)
						key += ", jsonb('" + metadata + "')"
					} else {
						key += ", '" + metadata + "'"
					}
					c.exec(fmt.Sprintf("INSERT INTO river_job (kind, max_attempts, args, state, finalized_at, unique_key, metadata) VALUES ('mail', 1, '{}', '%s', %s, %s)", state, finalized, key))
				}
			}
		}
		c.exec("UPDATE river_job SET attempt = attempt + 1, attempted_at = CURRENT_TIMESTAMP")
		s := c.store(t)
		for _, size := range []int{0, 1, 7} {
			require.Len(t, page(t, s.List(t.Context(), retryjob.Filter{PageSize: size}), 1000), 2, "in pages of %d", size)
		}
		require.Equal(t, 2, counted(t, s, retryjob.Filter{}))
		_, err := s.Get(t.Context(), "j")
		require.ErrorIs(t, err, retryjob.ErrUnknownJob)
		n, err := s.ReplayAll(t.Context(), retryjob.Filter{})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		n, err = s.Purge(t.Context(), retryjob.Filter{})
		require.NoError(t, err)
		require.Zero(t, n)
		c.exec("DELETE FROM river_job")
	})
}

// TestForeignMetadataDecidesNothing: a job with metadata from another program is River's own: it is worked on as by a
// client without the adapter, with the policy of river.Config, and is not listed.
func TestForeignMetadataDecidesNothing(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { foreignMetadata(t, riversqlite.New(newSQLite(t))) })
	t.Run("PostgreSQL", func(t *testing.T) { foreignMetadata(t, riverpgxv5.New(newPostgres(t))) })
}

func foreignMetadata[TTx any](t *testing.T, driver riverdriver.Driver[TTx]) {
	plain, err := river.NewClient(driver, &river.Config{})
	require.NoError(t, err)
	var rows []int64
	for n, metadata := range foreign {
		for _, unique := range []bool{false, true} { // whose key is not that of an ID
			opts := &river.InsertOpts{Metadata: []byte(metadata), UniqueOpts: river.UniqueOpts{ByArgs: unique}}
			result, err := plain.Insert(t.Context(), mail{To: fmt.Sprint(n)}, opts)
			require.NoError(t, err, metadata)
			rows = append(rows, result.Job.ID)
		}
	}
	var made atomic.Int64
	var policy atOnce
	a := newAdapter(t)
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[mail]) error {
		made.Add(1)
		if job.Args.To[0]%2 == 0 && job.Attempt == 1 {
			return errFull
		}
		return nil
	}))
	client, err := retryriver.NewClient(a, driver, &river.Config{
		Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 5}}, TestOnly: true,
		FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 10 * time.Millisecond, RetryPolicy: &policy,
	})
	require.NoError(t, err)
	result, err := client.Insert(t.Context(), mail{To: "1"}, &river.InsertOpts{MaxAttempts: 2})
	require.NoError(t, err)
	require.Equal(t, 2, result.Job.MaxAttempts)
	require.NotContains(t, string(result.Job.Metadata), "retryjob")
	rows = append(rows, result.Job.ID)
	require.NoError(t, client.Start(t.Context()))
	defer client.StopAndCancel(context.Background())
	for n, row := range rows {
		require.Eventually(t, func() bool {
			job, err := client.JobGet(t.Context(), row)
			return err == nil && job.State == rivertype.JobStateCompleted
		}, patience, 5*time.Millisecond, "%d", n)
	}
	require.GreaterOrEqual(t, made.Load(), int64(len(rows)), "each was worked on")
	require.NotZero(t, policy.asked.Load())
	require.Empty(t, page(t, retryriver.NewAdmin(a, client).List(t.Context(), retryjob.Filter{}), 1))
}

// atOnce is a policy of River that counts its calls.
type atOnce struct{ asked atomic.Int64 }

func (p *atOnce) NextRetry(*rivertype.JobRow) time.Time {
	p.asked.Add(1)
	return time.Now().Add(time.Millisecond)
}
