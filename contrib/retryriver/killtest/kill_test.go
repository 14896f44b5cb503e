//go:build unix

package killtest_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/contrib/retrypgx/pgtest"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

var (
	jobCount     = flag.Int("jobs", 80, "how many jobs there are")
	processCount = flag.Int("processes", 2, "how many workers there are at any time")
	killCount    = flag.Int("kills", 4, "how many workers are killed")
	stopCount    = flag.Int("suspensions", 1, "how many workers are suspended until all jobs have ended")
	givenSeed    = flag.Uint64("seed", 0, "repeats the jobs, the pauses and the victims; 0 draws a seed")
)

// patience is how long the jobs may take to end after the last worker was killed: a lease of 15 s, an election every 6
// s, a search for stuck jobs every 30 s, and time to repeat lost work.
const patience = 100 * time.Second

func TestNoJobIsLostOverSQLite(t *testing.T) {
	t.Parallel()
	run(t, filepath.Join(t.TempDir(), "jobs.db"))
}

func TestNoJobIsLostOverPostgreSQL(t *testing.T) {
	t.Parallel()
	run(t, pgtest.Start(t).DSN())
}

// run enqueues jobs while workers are killed, waits until all have ended, and checks the results.
func run(t *testing.T, database string) {
	if testing.Short() {
		t.Skip("kills processes and waits for River to notice: a minute or so")
	}
	seed := *givenSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed: -jobs %d -processes %d -kills %d -suspensions %d -seed %d", *jobCount, *processCount, *killCount, *stopCount, seed)
	s := &scene{
		database: database, effects: filepath.Join(t.TempDir(), "effects"), jobs: map[string]string{}, rnd: rand.New(rand.NewPCG(seed, 0)),
	}
	began := time.Now()
	s.play(t)
	took := time.Since(began).Round(time.Second)

	infos, beats := s.collect(t)
	checkChain(t, beats)
	for _, info := range beats {
		if info.Status.Final() {
			infos, s.jobs[info.JobID] = append(infos, info), info.Kind
		}
	}
	a := newAudit(infos, s.readEffects(t))
	require.Empty(t, a.missing(s.jobs), "jobs that are lost, or there twice")
	require.Empty(t, a.faults(s.jobs))
	t.Logf("%d jobs, of which %d are occurrences of one, %d processes, %d kills in %s\n%s", len(s.jobs), len(beats)-1, *processCount, *killCount, took, a.report())
}

// scene is the database and the files of one test.
type scene struct {
	database, effects string
	rnd               *rand.Rand
	jobs              map[string]string // the kinds of those enqueued, by ID
}

// play returns when all jobs are final and all workers have ended.
func (s *scene) play(t *testing.T) {
	file, err := openEffects(s.effects)
	require.NoError(t, err)
	defer file.Close()
	e, err := open(t.Context(), s.database, file)
	require.NoError(t, err)
	defer e.close()

	workers := make([]*process, *processCount)
	for i := range workers {
		workers[i] = start(t, s.database, s.effects)
	}
	for _, w := range workers {
		w.awaitReady(t)
	}
	var stopped []*process
	for kill := range *killCount {
		s.enqueue(t, e, (kill+1)**jobCount / *killCount)
		replay(t, e)
		pause(t.Context(), upTo(s.rnd, 1500*time.Millisecond))
		victim := s.rnd.IntN(len(workers))
		if len(stopped) < *stopCount && kill%2 == 0 {
			s.awaitLeased(t, e)
			workers[victim].suspend(t, s.locked(t))
			stopped = append(stopped, workers[victim])
			workers[victim] = start(t, s.database, s.effects)
			workers[victim].awaitReady(t)
			victim = s.rnd.IntN(len(workers))
		}
		workers[victim].kill(t)
		workers[victim] = start(t, s.database, s.effects)
		workers[victim].awaitReady(t)
	}
	s.enqueue(t, e, *jobCount) // with no worker killed
	awaitEnd(t, e)
	s.awaitBeats(t)
	before, _ := s.collect(t)
	for _, w := range stopped {
		w.resume(t)
	}
	for _, w := range append(workers, stopped...) {
		w.finish(t)
	}
	after, _ := s.collect(t)
	require.Equal(t, withoutLate(before), withoutLate(after), "a worker that was suspended has changed what had ended")
}

// withoutLate returns the jobs without the late ends of lost attempts.
func withoutLate(infos []retryjob.Info) map[string]string {
	all := map[string]string{}
	for _, info := range infos {
		info.History = slices.Clone(info.History)
		for i := range info.History {
			if a := &info.History[i]; a.Late || a.Err == retryjob.ErrLost.Error() {
				*a = retryjob.Attempt{ID: a.ID, Number: a.Number, Due: a.Due, Status: a.Status, Reason: a.Reason}
			}
		}
		text, err := json.Marshal(info)
		if err != nil {
			panic(err)
		}
		all[info.JobID] = string(text)
	}
	return all
}

// awaitLeased returns when a worker has a job.
func (s *scene) awaitLeased(t *testing.T, e *engine) {
	for {
		counts, err := unfinished(t.Context(), e)
		require.NoError(t, err)
		if counts[retryjob.Leased] > 0 {
			return
		}
		pause(t.Context(), time.Millisecond)
	}
}

// locked returns a function that reports whether a suspended process holds a lock in the database.
func (s *scene) locked(t *testing.T) func() bool {
	ctx := t.Context()
	if isPostgres(s.database) {
		conn, err := pgx.Connect(ctx, s.database)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return func() (busy bool) {
			pause(ctx, 50*time.Millisecond)
			require.NoError(t, conn.QueryRow(ctx, "SELECT count(*) > 0 FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'").Scan(&busy))
			return busy
		}
	}
	db, err := sql.Open("sqlite", "file:"+s.database+"?_pragma=busy_timeout(2000)&_txlock=immediate")
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return func() bool {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return true
		}
		require.NoError(t, tx.Rollback())
		return false
	}
}

// enqueue enqueues jobs until there are n.
func (s *scene) enqueue(t *testing.T, e *engine, upTo int) {
	for len(s.jobs) < upTo {
		kind := kinds[len(s.jobs)%len(kinds)]
		id, err := e.put(t.Context(), kind, newTimes(s.rnd))
		require.NoError(t, err)
		s.jobs[id] = kind
	}
}

// awaitEnd returns when all jobs are final.
func awaitEnd(t *testing.T, e *engine) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		replayed := replay(t, e)
		counts, err := unfinished(ctx, e)
		if err == nil && replayed == 0 && len(counts) == 0 {
			return
		}
		require.NoErrorf(t, ctx.Err(), "jobs that do not end: %v, %v", counts, err)
		require.NoError(t, err)
		pause(ctx, time.Second)
	}
}

// replay replays the jobs that wait for it, and returns how many.
func replay(t *testing.T, e *engine) int {
	n, err := e.ReplayAll(t.Context(), retryjob.Filter{Kinds: []string{"is_replayed"}})
	require.NoError(t, err)
	return n
}

// unfinished counts the jobs that are not final.
func unfinished(ctx context.Context, e *engine) (map[retryjob.Status]int, error) {
	counts := map[retryjob.Status]int{}
	open := retryjob.Filter{Statuses: []retryjob.Status{retryjob.Pending, retryjob.Leased, retryjob.WaitingRetry}}
	for info, err := range e.List(ctx, open) {
		if err != nil {
			return nil, err
		}
		if !slices.Contains(info.Tags, retryjob.RecurringTag) {
			counts[info.Status]++
		}
	}
	return counts, nil
}

// collect returns all jobs, as read by a tool that opens the database, with the occurrences of the recurring job apart.
func (s *scene) collect(t *testing.T) (infos, beats []retryjob.Info) {
	store, err := retryriver.OpenStore(t.Context(), s.database)
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	for info, err := range store.List(t.Context(), retryjob.Filter{}) {
		require.NoError(t, err)
		if slices.Contains(info.Tags, retryjob.RecurringTag) {
			beats = append(beats, info)
		} else {
			infos = append(infos, info)
		}
	}
	return infos, beats
}

// readEffects returns the effects of the attempts, in order.
func (s *scene) readEffects(t *testing.T) []effect {
	text, err := os.ReadFile(s.effects)
	require.NoError(t, err)
	var effects []effect
	for line := range bytes.Lines(text) {
		var e effect
		require.NoError(t, json.Unmarshal(line, &e), fmt.Sprintf("%q", line))
		effects = append(effects, e)
	}
	return effects
}
