package retryjob_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryjob"
)

// engineModelJob is the expected state of a job, computed in the simplest way.
type engineModelJob struct {
	status   retryjob.Status
	attempts int
	replays  int
	runs     int
	at       time.Time // due, or ended
}

const (
	modelWait = 7 * time.Second // after each failure, at most 3 attempts
	modelKeep = 5 * time.Minute
)

// engineModel does what the engine does, one event after the other. The ID of a job says after how many attempts it
// succeeds.
type engineModel struct {
	jobs map[string]*engineModelJob
}

func succeedsAt(id string) int { return int(id[0] - '0') }

func (j *engineModelJob) change(s retryjob.Status, at time.Time) { j.status, j.at = s, at }

// advance makes the attempts that are due by now, and removes the jobs that are too old.
func (m *engineModel) advance(now time.Time) {
	for {
		var next *engineModelJob
		var name string
		for id, j := range m.jobs {
			if (j.status == retryjob.Pending || j.status == retryjob.WaitingRetry) && !j.at.After(now) && (next == nil || j.at.Before(next.at)) {
				next, name = j, id
			}
		}
		if next == nil {
			break
		}
		next.attempts++
		next.runs++
		switch {
		case next.attempts == succeedsAt(name)-2*next.replays:
			next.change(retryjob.Succeeded, next.at)
		case next.attempts == 3:
			next.change(retryjob.DeadLettered, next.at)
		default:
			next.change(retryjob.WaitingRetry, next.at.Add(modelWait))
		}
	}
	for id, j := range m.jobs {
		if j.status.Final() && now.Sub(j.at) >= modelKeep {
			delete(m.jobs, id)
		}
	}
}

func TestTheEngineDoesWhatItsModelDoes(t *testing.T) {
	for seed := range uint64(12) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 7))
			e := open(t, fixed(3, modelWait), func(ctx context.Context, j retryjob.Job) error {
				run, _ := retryjob.AttemptFrom(ctx)
				if run.Number == succeedsAt(j.ID)-2*run.Replays {
					return nil
				}
				return errDown
			}, func(c *retryjob.Options) { c.Concurrency, c.Retention = 1+int(seed%3), modelKeep })
			m := &engineModel{jobs: map[string]*engineModelJob{}}
			anyID := func() string { return fmt.Sprintf("%d-%d", 1+rnd.IntN(6), rnd.IntN(12)) }
			for range 300 {
				synctest.Wait()
				now := time.Now()
				m.advance(now)
				id := anyID()
				j := m.jobs[id]
				switch rnd.IntN(12) {
				case 0, 1, 2:
					due := now.Add(time.Duration(rnd.IntN(20)) * time.Second)
					_, err := e.Enqueue(t.Context(), retryjob.Job{ID: id, Kind: "work", Policy: "p", Due: due})
					if j != nil {
						require.ErrorIs(t, err, retryjob.ErrDuplicate)
						break
					}
					require.NoError(t, err)
					m.jobs[id] = &engineModelJob{}
					m.jobs[id].change(retryjob.Pending, due)
				case 3, 4:
					err := e.Replay(t.Context(), id)
					switch {
					case j == nil:
						require.ErrorIs(t, err, retryjob.ErrUnknownJob)
					case j.status.Replayable():
						require.NoError(t, err)
						j.attempts, j.runs = 0, 0
						j.replays++
						j.change(retryjob.Pending, now)
					default:
						require.ErrorIs(t, err, retryjob.ErrNotReplayable)
					}
				case 5:
					err := e.Cancel(t.Context(), id)
					switch {
					case j == nil:
						require.ErrorIs(t, err, retryjob.ErrUnknownJob)
					case j.status.Final():
						require.EqualError(t, err, fmt.Sprintf("retryjob: job %s is %s already", id, j.status))
					default:
						require.NoError(t, err)
						j.change(retryjob.Canceled, now)
					}
				case 6:
					status := retryjob.Statuses()[rnd.IntN(8)]
					n, err := e.Purge(t.Context(), retryjob.Filter{Statuses: []retryjob.Status{status}, PageSize: 1 + rnd.IntN(5)})
					require.NoError(t, err)
					before := len(m.jobs)
					for id, j := range m.jobs {
						if j.status == status && status.Final() {
							delete(m.jobs, id)
						}
					}
					require.Equal(t, before-len(m.jobs), n)
				default:
					<-time.After(time.Duration(rnd.IntN(30)) * time.Second / 2)
				}
				synctest.Wait()
				m.advance(time.Now())
				agree(t, e, m, 1+rnd.IntN(9))
			}
			for id := range m.jobs {
				if m.jobs[id].status.Final() {
					delete(m.jobs, id)
				}
			}
			require.Len(t, shutdown(t, e), len(m.jobs), "seed %d", seed)
		})
	}
}

// agree compares every job, by Get and by List, with the model.
func agree(t *testing.T, e *retryjob.Engine, m *engineModel, page int) {
	t.Helper()
	listed := map[string]retryjob.Info{}
	last := time.Now()
	for i, err := range e.List(t.Context(), retryjob.Filter{PageSize: page}) {
		require.NoError(t, err)
		require.False(t, i.Changed().After(last), "the newest change is first")
		last = i.Changed()
		require.NotContains(t, listed, i.JobID)
		require.NoError(t, i.Validate())
		listed[i.JobID] = i
	}
	require.Len(t, listed, len(m.jobs))
	for id, want := range m.jobs {
		i := get(t, e, id)
		require.Equal(t, i, listed[id])
		at := i.Due
		if i.Status.Final() {
			at = i.Ended
		}
		require.Equal(t, *want, engineModelJob{i.Status, i.Attempts, i.Replays, len(i.History), at}, id)
	}
}
