package retryriver_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

func TestNewNamesEveryFault(t *testing.T) {
	_, err := retryriver.New(retryriver.Options{Retention: -1})
	require.EqualError(t, err, "retryriver: Options.Policies <nil> must be set; Options.Retention -1ns is negative")
}

// TestAClientThatIsNotFromNewClientTakesNoJobs: it would run them without a policy.
func TestAClientThatIsNotFromNewClientTakesNoJobs(t *testing.T) {
	db, a := newSQLite(t), newAdapter(t)
	foreign, err := river.NewClient(riversqlite.New(db), &river.Config{})
	require.NoError(t, err)
	m := retryriver.NewAdmin(a, foreign)
	job := retryjob.Job{ID: "one", Kind: "kind", Policy: "once"}
	for name, insert := range map[string]func() error{
		"Enqueue":     func() error { _, err := m.Enqueue(t.Context(), job); return err },
		"EnqueueMany": func() error { _, err := m.EnqueueMany(t.Context(), []retryjob.Job{job}); return err },
		"InsertTx": func() error {
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			_, err = retryriver.InsertTx(t.Context(), a, foreign, tx, job)
			return errors.Join(err, tx.Commit())
		},
	} {
		require.ErrorContains(t, insert(), "the client is not from NewClient", name)
		var jobs int
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM river_job").Scan(&jobs))
		require.Zero(t, jobs, name)
	}

	client, err := retryriver.NewClient(a, riversqlite.New(db), &river.Config{})
	require.NoError(t, err)
	_, err = retryriver.NewAdmin(a, client).Enqueue(t.Context(), job)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "UPDATE river_job SET state = 'discarded', finalized_at = CURRENT_TIMESTAMP")
	require.NoError(t, err)
	require.EqualError(t, m.Replay(t.Context(), "one"), "the client is not from NewClient")
	i, err := m.Get(t.Context(), "one")
	require.NoError(t, err)
	require.Equal(t, retryjob.DeadLettered, i.Status)
}

func TestNewClientSetsWhatIsNotSet(t *testing.T) {
	cfg, err := retryriver.Configure(newAdapter(t), river.Config{})
	require.NoError(t, err)
	require.Equal(t, time.Minute, cfg.JobTimeout)
	require.Equal(t, 2*time.Minute, cfg.RescueStuckJobsAfter)
	require.Equal(t, 14*24*time.Hour, cfg.CancelledJobRetentionPeriod)
	require.Equal(t, 14*24*time.Hour, cfg.DiscardedJobRetentionPeriod)
	require.Equal(t, 24*time.Hour, cfg.CompletedJobRetentionPeriod)
	require.Len(t, cfg.Plugins, 1)
	require.NotNil(t, cfg.RetryPolicy)
}

func TestNewClientRefusesWhatLosesJobs(t *testing.T) {
	day := 24 * time.Hour
	for _, row := range []struct {
		name string
		cfg  river.Config
		want []string
	}{
		{name: "a lost job is never found", cfg: river.Config{JobTimeout: -1}, want: []string{
			"retryriver: river.Config.JobTimeout -1ns is negative, with which a lost job is never found"}},
		{name: "a job is taken for lost while it runs", cfg: river.Config{JobTimeout: time.Hour, RescueStuckJobsAfter: time.Hour}, want: []string{
			"retryriver: river.Config.RescueStuckJobsAfter 1h is not above JobTimeout 1h"}},
		{name: "retention without end", cfg: river.Config{
			CompletedJobRetentionPeriod: -1, CancelledJobRetentionPeriod: -1, DiscardedJobRetentionPeriod: 7 * day,
		}, want: []string{
			"retryriver: river.Config.CompletedJobRetentionPeriod -1ns is negative, which SQLite takes for no time at all",
			"river.Config.CancelledJobRetentionPeriod -1ns is not Options.Retention 336h",
			"river.Config.DiscardedJobRetentionPeriod 168h is not Options.Retention 336h"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := retryriver.NewClient(newAdapter(t), riversqlite.New(nil), &row.cfg)
			require.EqualError(t, err, strings.Join(row.want, "; "))
		})
	}
	a := newAdapter(t)
	_, err := retryriver.NewClient(a, riversqlite.New(nil), nil)
	require.EqualError(t, err, "retryriver: NewClient: river.Config is nil")
	var cfg river.Config
	_, err = retryriver.NewClient(a, riversqlite.New(nil), &cfg)
	require.NoError(t, err)
	require.Equal(t, river.Config{}, cfg, "it is a copy that is changed")
	_, err = retryriver.NewClient(a, riversqlite.New(nil), &cfg)
	require.EqualError(t, err, "retryriver: NewClient: the Adapter has a client already")
}

func TestAddHandlerRefusesWhatRiverWould(t *testing.T) {
	a, workers, nothing := newAdapter(t), river.NewWorkers(), fine.Handlers["kind"]
	require.NoError(t, a.AddHandler(workers, "mail", nothing))
	require.EqualError(t, a.AddHandler(workers, "mail", nothing), `retryriver: AddHandler: worker for kind "mail" is already registered`)
	require.EqualError(t, a.AddHandler(workers, "m", nothing), `retryriver: AddHandler: kind "m" has 1 bytes: River takes 2 to 127`)
	require.EqualError(t, a.AddHandler(workers, "call", nil), `retryriver: AddHandler: the handler of kind "call" is nil`)
	require.EqualError(t, a.AddHandler(nil, "call", nothing), "retryriver: AddHandler: the river.Workers are nil")
}
