package retryjob_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

var errDown = errors.New("the peer is down")

// open returns an engine with one policy "p" and one handler "work". It is shut down when the test ends.
func open(t testing.TB, p retry.Policy, h retryjob.Handler, set ...func(*retryjob.Options)) *retryjob.Engine {
	c := retryjob.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{"p": p}),
		Handlers: map[string]retryjob.Handler{"work": h},
	}
	for _, f := range set {
		f(&c)
	}
	e, err := retryjob.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = e.Shutdown(context.Background()) })
	return e
}

func fixed(attempts int, wait time.Duration) retry.Policy {
	return retry.Policy{MaxAttempts: attempts, Backoff: retry.Backoff{Mode: retry.Fixed, Base: wait}}
}

func put(t testing.TB, e *retryjob.Engine, id string, in time.Duration) retryjob.Handle {
	h, err := e.Enqueue(context.Background(), retryjob.Job{ID: id, Kind: "work", Policy: "p", Due: time.Now().Add(in)})
	require.NoError(t, err)
	return h
}

func get(t testing.TB, e *retryjob.Engine, id string) retryjob.Info {
	i, err := e.Get(context.Background(), id)
	require.NoError(t, err)
	return i
}

// await waits until a job is final.
func await(t testing.TB, h retryjob.Handle) retryjob.Info {
	i, err := h.Wait(context.Background())
	require.NoError(t, err)
	require.True(t, i.Status.Final())
	return i
}

// count returns the number of jobs by status.
func count(t testing.TB, e *retryjob.Engine, f retryjob.Filter) map[retryjob.Status]int {
	counts, err := e.Count(context.Background(), f)
	require.NoError(t, err)
	jobs := map[retryjob.Status]int{}
	for status, tally := range counts {
		jobs[status] = tally.Jobs
	}
	return jobs
}

func shutdown(t testing.TB, e *retryjob.Engine) []retryjob.Info {
	left, err := e.Shutdown(context.Background())
	require.NoError(t, err)
	return left
}

func succeed(context.Context, retryjob.Job) error { return nil }
func fail(context.Context, retryjob.Job) error    { return errDown }

func TestNewNamesEveryBadField(t *testing.T) {
	_, err := retryjob.New(retryjob.Options{
		Handlers: map[string]retryjob.Handler{"x": succeed, "nothing": nil}, Concurrency: -1, Queues: map[string]int{"Up": 1, "none": 0, "one": 1}, Retention: -time.Second, KeepSucceeded: -1,
	})
	require.EqualError(t, err, `retryjob: Options.Policies <nil> must be set; Options.Handlers["nothing"] <nil> must be set; `+
		`Options.Handlers kind "x" is shorter than 2 bytes; Options.Concurrency -1 is negative; Options.Queues "Up" is not up to 64 lower-case letters and digits with single - or _ between them; Options.Queues["none"] 0 is below 1; Options.Retention -1s is negative; Options.KeepSucceeded -1ns is negative`)
}

func TestKept(t *testing.T) {
	day := 24 * time.Hour
	for _, row := range []struct{ retention, succeeded, wantOthers, wantSucceeded time.Duration }{
		{0, 0, 14 * day, day}, {time.Hour, 0, time.Hour, time.Hour}, {time.Hour, 2 * day, time.Hour, 2 * day}, {0, time.Hour, 14 * day, time.Hour},
	} {
		o := retryjob.Options{Retention: row.retention, KeepSucceeded: row.succeeded}
		require.Equal(t, row.wantSucceeded, o.Kept(retryjob.Succeeded))
		for _, s := range []retryjob.Status{retryjob.DeadLettered, retryjob.Expired, retryjob.FailedNoRetries, retryjob.Canceled} {
			require.Equal(t, row.wantOthers, o.Kept(s))
		}
	}
}

func TestAJobSucceedsAfterTwoFailuresAtExactTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at []time.Duration
		e := open(t, retry.Policy{MaxAttempts: 3}, func(context.Context, retryjob.Job) error {
			if at = append(at, time.Since(start)); len(at) < 3 {
				return errDown
			}
			return nil
		})
		i := await(t, put(t, e, "", time.Second))
		require.Equal(t, []time.Duration{time.Second, 6 * time.Second, 16 * time.Second}, at)
		require.Equal(t, retryjob.Succeeded, i.Status)
		require.Equal(t, start.Add(time.Second), i.FirstDue)
		require.Equal(t, start.Add(16*time.Second), i.Ended)
		require.Len(t, i.History, 3)
		require.Equal(t, retryjob.Attempt{
			ID: i.AttemptID(2), Number: 2, Start: start.Add(6 * time.Second), End: start.Add(6 * time.Second),
			Due: start.Add(16 * time.Second), Status: retryjob.WaitingRetry, Err: "the peer is down",
		}, i.History[1])
	})
}

func TestEnqueueRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, fixed(1, time.Hour), succeed)
		made := put(t, e, "", 0).ID()
		put(t, e, "mine", time.Hour)
		done, cancel := context.WithCancel(t.Context())
		cancel()
		prefix := made[:strings.LastIndexByte(made, '-')+1]
		for name, c := range map[string]struct {
			ctx  context.Context
			job  retryjob.Job
			want string
		}{
			"an ended context":      {done, retryjob.Job{Kind: "work", Policy: "p"}, "context canceled"},
			"an unknown kind":       {t.Context(), retryjob.Job{Kind: "other", Policy: "p"}, `retryjob: Job.Kind "other": retryjob: unknown kind`},
			"an unknown policy":     {t.Context(), retryjob.Job{Kind: "work", Policy: "q"}, `retryjob: Job.Policy "q" is not the name of a policy`},
			"an ID that is there":   {t.Context(), retryjob.Job{ID: "mine", Kind: "work", Policy: "p"}, `retryjob: a job with that ID is there already: "mine"`},
			"the ID of a final job": {t.Context(), retryjob.Job{ID: made, Kind: "work", Policy: "p"}, fmt.Sprintf("retryjob: a job with that ID is there already: %q", made)},
			"an ID yet to be made up": {t.Context(), retryjob.Job{ID: prefix + "2", Kind: "work", Policy: "p"},
				fmt.Sprintf("retryjob: Job.ID %q has the form of the IDs that this engine generates", prefix+"2")},
			"a due time centuries ahead": {t.Context(), retryjob.Job{Kind: "work", Policy: "p", Due: time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC)},
				"retryjob: Job.Due 2500-01-01 00:00:00 +0000 UTC is more than 200 years ahead"},
		} {
			synctest.Wait()
			_, err := e.Enqueue(c.ctx, c.job)
			require.EqualError(t, err, c.want, name)
		}
		require.Len(t, shutdown(t, e), 1)
		_, err := e.Enqueue(t.Context(), retryjob.Job{Kind: "work", Policy: "p"})
		require.ErrorIs(t, err, retryjob.ErrShutdown)
	})
}

func TestAnyDueTimeWithin200YearsIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, fixed(1, time.Hour), succeed)
		now := time.Now()
		for due, first := range map[time.Time]time.Time{
			now.AddDate(199, 0, 0): now.AddDate(199, 0, 0), now.AddDate(1, 0, 0): now.AddDate(1, 0, 0), now.Add(time.Nanosecond): now.Add(time.Nanosecond),
			now: now, now.Add(-time.Nanosecond): now, now.AddDate(-300, 0, 0): now, {}: now,
		} {
			h, err := e.Enqueue(t.Context(), retryjob.Job{Kind: "work", Policy: "p", Due: due})
			require.NoError(t, err, due)
			i, err := h.Inspect(t.Context())
			require.NoError(t, err)
			require.True(t, first.Equal(i.FirstDue), "%v is not %v", i.FirstDue, first)
		}
	})
}

func TestUnknownJobsAreDistinguished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, other := open(t, fixed(1, time.Hour), succeed), open(t, fixed(1, time.Hour), succeed)
		made := put(t, e, "", 0).ID()
		put(t, e, "mine", 0)
		synctest.Wait()
		n, err := e.Purge(t.Context(), retryjob.Filter{})
		require.NoError(t, err)
		require.Equal(t, 2, n)
		prefix := made[:strings.LastIndexByte(made, '-')+1]
		for id, want := range map[string]struct {
			is  error
			not error
		}{
			made:           {retryjob.ErrAgedOut, retryjob.ErrNeverKnown},
			prefix + "2":   {retryjob.ErrNeverKnown, retryjob.ErrAgedOut},
			prefix + "01":  {retryjob.ErrUnknownJob, retryjob.ErrAgedOut},
			prefix + "-1":  {retryjob.ErrUnknownJob, retryjob.ErrAgedOut},
			"mine":         {retryjob.ErrUnknownJob, retryjob.ErrAgedOut},
			"":             {retryjob.ErrUnknownJob, retryjob.ErrNeverKnown},
			"mem-":         {retryjob.ErrUnknownJob, retryjob.ErrNeverKnown},
			prefix[:8]:     {retryjob.ErrUnknownJob, retryjob.ErrNeverKnown},
			"\x00" + made:  {retryjob.ErrUnknownJob, retryjob.ErrNeverKnown},
			prefix + "999": {retryjob.ErrNeverKnown, retryjob.ErrAgedOut},
		} {
			_, err := e.Get(context.Background(), id)
			require.ErrorIs(t, err, want.is, id)
			require.ErrorIs(t, err, retryjob.ErrUnknownJob, id)
			require.NotErrorIs(t, err, want.not, id)
		}
		_, err = other.Get(t.Context(), made)
		require.ErrorIs(t, err, retryjob.ErrUnknownJob)
		require.NotErrorIs(t, err, retryjob.ErrNeverKnown)
		require.ErrorContains(t, err, "whose jobs ended with its process")
		for _, id := range []string{"order-7", "mem-7", "mem-7-8", strings.Repeat("x", len(prefix)-1) + "-1", "mem-" + strings.Repeat("x", len(prefix))} {
			_, err = e.Get(t.Context(), id)
			require.EqualError(t, err, fmt.Sprintf("retryjob: unknown job: %q", id), "no engine has made it up")
		}
		put(t, e, "mine", 0) // the ID is free again
		put(t, e, made, 0)
		synctest.Wait()
		require.Equal(t, retryjob.Succeeded, get(t, e, made).Status)
	})
}

func TestJobsStartInDueOrderAndTiesInTheOrderOfEnqueuing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type planned struct {
			due time.Time
			seq int
			id  string
		}
		var plan []planned
		var got, want []string
		e := open(t, fixed(1, time.Hour), func(_ context.Context, j retryjob.Job) error {
			got = append(got, j.ID)
			return nil
		}, func(c *retryjob.Options) { c.Concurrency = 1 })
		rnd := rand.New(rand.NewPCG(5, 5))
		for n := range 5000 {
			in := time.Duration(rnd.IntN(100)) * time.Millisecond
			id := fmt.Sprint(n)
			put(t, e, id, in+time.Millisecond)
			plan = append(plan, planned{time.Now().Add(in), n, id})
		}
		slices.SortFunc(plan, func(a, b planned) int { return cmp.Or(a.due.Compare(b.due), a.seq-b.seq) })
		for _, p := range plan {
			want = append(want, p.id)
		}
		<-time.After(time.Second)
		synctest.Wait()
		require.Equal(t, want, got)
	})
}

func TestPanicsAndGoexitAreFailuresAndTheWorkerLivesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, fixed(1, time.Hour), func(_ context.Context, j retryjob.Job) error {
			switch j.ID {
			case "panic":
				panic("boom")
			case "panic nil":
				panic(nil)
			case "error":
				panic(errDown)
			case "goexit":
				runtime.Goexit()
			}
			return nil
		}, func(c *retryjob.Options) { c.Concurrency = 1 })
		for id, want := range map[string]string{
			"panic": "retryjob: the handler panicked: boom", "error": "retryjob: the handler panicked: the peer is down",
			"goexit": "retryjob: the handler ended its goroutine", "panic nil": "retryjob: the handler panicked: panic called with nil argument",
		} {
			h, next := put(t, e, id, 0), put(t, e, "", 0)
			i := await(t, h)
			require.Equal(t, []any{retryjob.DeadLettered, retry.AttemptsExhausted, want}, []any{i.Status, i.Reason, i.Last().Err})
			require.Equal(t, retryjob.Succeeded, await(t, next).Status)
		}
	})
}

func TestCodeOfAPolicyThatPanicsLosesNoJob(t *testing.T) {
	boom := func() { panic("boom") }
	for name, c := range map[string]struct {
		policy func(*retry.Policy)
		status retryjob.Status
		text   string
	}{
		"Gate":          {func(p *retry.Policy) { p.Gate = func(context.Context) time.Duration { boom(); return 0 } }, retryjob.DeadLettered, `retryjob: a function of policy "p" panicked: boom`},
		"Gate's Goexit": {func(p *retry.Policy) { p.Gate = func(context.Context) time.Duration { runtime.Goexit(); return 0 } }, retryjob.DeadLettered, `retryjob: a function of policy "p" ended its goroutine`},
		"Classify":      {func(p *retry.Policy) { p.Classify = func(error) retry.Class { boom(); return 0 } }, retryjob.DeadLettered, `retryjob: a function of policy "p" panicked: boom`},
		"Observe":       {func(p *retry.Policy) { p.Observe = func(context.Context, retry.Event) { boom() } }, retryjob.WaitingRetry, `the peer is down; after it was decided: retryjob: a function of policy "p" panicked: boom`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := fixed(2, time.Hour)
				c.policy(&p)
				e := open(t, p, fail, func(c *retryjob.Options) { c.Concurrency = 1 })
				put(t, e, "a", 0)
				put(t, e, "b", 0)
				synctest.Wait()
				for _, id := range []string{"a", "b"} {
					i := get(t, e, id)
					require.Equal(t, c.status, i.Status)
					require.Equal(t, c.text, i.Last().Err)
					require.NoError(t, i.Validate())
				}
			})
		})
	}
}

func TestAJobWhosePolicyIsGoneIsPutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gone atomic.Bool
		e := open(t, retry.Policy{}, succeed, func(o *retryjob.Options) {
			o.Policies = func(*retryjob.Job) (retry.Policy, error) {
				if gone.Load() {
					return retry.Policy{}, retryjob.ErrUnknownPolicy
				}
				return retry.Policy{}, nil
			}
		})
		put(t, e, "a", time.Hour)
		gone.Store(true)
		due := time.Now().Add(time.Hour)
		<-time.After(time.Hour + 1)
		i := get(t, e, "a")
		require.Equal(t, []any{retryjob.Pending, 0, due.Add(retryjob.PutOff)}, []any{i.Status, i.Attempts, i.Due})
		gone.Store(false)
		<-time.After(retryjob.PutOff)
		require.Equal(t, retryjob.Succeeded, get(t, e, "a").Status)
	})
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, fixed(2, time.Minute), fail)
		h := put(t, e, "a", 0)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		i, err := h.Wait(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, retryjob.WaitingRetry, i.Status)

		ends := make(chan retryjob.Info, 3) // callers of Wait get the end although the job is purged or replayed at once
		for range cap(ends) {
			go func() {
				i, err := e.Wait(context.Background(), "a")
				require.NoError(t, err)
				ends <- i
			}()
		}
		synctest.Wait()
		require.NoError(t, e.Cancel(t.Context(), "a"))
		n, err := e.Purge(t.Context(), retryjob.Filter{})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		for range cap(ends) {
			require.Equal(t, retryjob.Canceled, (<-ends).Status)
		}
		_, err = h.Wait(t.Context())
		require.ErrorIs(t, err, retryjob.ErrUnknownJob)
	})
}

func TestWaitWhileTheEngineIsShutDown(t *testing.T) {
	for name, row := range map[string]struct {
		in       time.Duration // until the attempt, which takes a minute
		patience time.Duration // of Shutdown
		status   retryjob.Status
		err      error
	}{
		"it gets the end of the attempt under way":       {0, time.Hour, retryjob.Succeeded, nil},
		"it ends when Shutdown has put the attempt back": {0, time.Second, retryjob.Pending, retryjob.ErrShutdown},
		"it ends if no attempt is under way":             {time.Hour, time.Hour, retryjob.Pending, retryjob.ErrShutdown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := open(t, fixed(1, time.Hour), func(ctx context.Context, _ retryjob.Job) error {
					select {
					case <-time.After(time.Minute):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				h := put(t, e, "a", row.in)
				wait := func() {
					i, err := h.Wait(context.Background())
					require.ErrorIs(t, err, row.err)
					require.Equal(t, row.status, i.Status)
				}
				var waiting sync.WaitGroup
				waiting.Go(wait)
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), row.patience)
				defer cancel()
				_, _ = e.Shutdown(ctx)
				waiting.Wait()
				wait() // and once it is shut down
			})
		})
	}
}

func TestACallerOfWaitThatLeavesLeavesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, fixed(1, time.Hour), func(context.Context, retryjob.Job) error {
			<-time.After(time.Minute)
			return nil
		}, func(o *retryjob.Options) { o.Concurrency = 200 })
		var waiting sync.WaitGroup
		for n := range 200 {
			h := put(t, e, fmt.Sprint(n), 0)
			for patience, want := range map[time.Duration]error{time.Second: context.DeadlineExceeded, time.Minute + 1: nil, time.Hour: nil} {
				waiting.Go(func() {
					ctx, cancel := context.WithTimeout(context.Background(), patience)
					defer cancel()
					i, err := h.Wait(ctx)
					require.ErrorIs(t, err, want)
					require.Equal(t, want == nil, i.Status == retryjob.Succeeded)
				})
			}
		}
		waiting.Wait()
	})
}

func TestTheContextOfAnAttemptEndsWithIt(t *testing.T) {
	for name, ask := range map[string]func(context.Context){
		"a context of which nothing was asked": func(context.Context) {},
		"a context that was waited for":        func(ctx context.Context) { ctx.Done() },
		"a context that has a child": func(ctx context.Context) {
			_, cancel := context.WithCancel(ctx)
			cancel()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var kept context.Context
				e := open(t, fixed(1, 0), func(ctx context.Context, _ retryjob.Job) error {
					require.NoError(t, ctx.Err())
					_, limited := ctx.Deadline()
					require.False(t, limited)
					ask(ctx)
					kept = ctx
					return nil
				})
				put(t, e, "a", 0)
				synctest.Wait()
				<-kept.Done()
				require.ErrorIs(t, kept.Err(), context.Canceled)
				child, cancel := context.WithTimeout(kept, time.Hour)
				defer cancel()
				require.ErrorIs(t, child.Err(), context.Canceled)
				a, ok := retryjob.AttemptFrom(child)
				require.True(t, ok)
				i := get(t, e, "a")
				require.Equal(t, i.AttemptID(1), a.AttemptID)
			})
		})
	}
}

func TestTheZeroHandleIsOfNoJob(t *testing.T) {
	var h retryjob.Handle
	_, err := h.Inspect(t.Context())
	require.ErrorIs(t, err, retryjob.ErrUnknownJob)
	_, err = h.Wait(t.Context())
	require.ErrorIs(t, err, retryjob.ErrUnknownJob)
}
