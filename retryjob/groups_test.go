package retryjob_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// answeredWith is an error of a server.
type answeredWith int

func (a answeredWith) Error() string   { return fmt.Sprint("status ", int(a)) }
func (a answeredWith) HTTPStatus() int { return int(a) }

// TestGroups holds that the groups of the engine agree with those of its list.
func TestGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handle := func(_ context.Context, j retryjob.Job) error {
			switch {
			case strings.HasPrefix(j.ID, "ok"):
				return nil
			case strings.HasPrefix(j.ID, "gone"):
				return retry.Permanent(answeredWith(410))
			default:
				return answeredWith(503)
			}
		}
		e, err := retryjob.New(retryjob.Options{
			Policies: retryjob.FromMap(map[string]retry.Policy{"once": {MaxAttempts: 1}, "twice": fixed(2, sec), "slow": fixed(9, time.Hour)}),
			Handlers: map[string]retryjob.Handler{"mail": handle, "fax": handle},
		})
		require.NoError(t, err)
		defer e.Shutdown(t.Context()) //nolint:errcheck // jobs are left
		began := time.Now().UTC().Truncate(time.Microsecond)
		n := 0
		enqueue := func(id, kind, policy string, tags ...string) {
			_, err := e.Enqueue(t.Context(), retryjob.Job{ID: fmt.Sprintf("%s-%d", id, n), Kind: kind, Policy: policy, Tags: tags, Payload: []byte(`{}`)})
			require.NoError(t, err)
			n++
		}
		for range 3 {
			enqueue("ok", "mail", "once", "tag_a")
			enqueue("gone", "mail", "once")
			enqueue("gone", "mail", "twice")
			enqueue("down", "fax", "twice", "tag_a", "tag_b")
			enqueue("down", "mail", "slow")
			<-time.After(time.Minute)
			synctest.Wait()
		}
		until := began.Add(4 * time.Minute)

		for name, f := range map[string]retryjob.Filter{
			"all": {}, "dead letters": {Statuses: []retryjob.Status{retryjob.DeadLettered}}, "kinds": {Kinds: []string{"fax"}},
			"tags": {Tags: []string{"tag_b"}}, "policies": {Policies: []string{"once", "slow"}},
			"reasons": {Reasons: []retry.Reason{retry.TerminalError}}, "one": {IDs: []string{"gone-1"}}, "times": {Since: began.Add(time.Minute), Until: until},
			"none": {Kinds: []string{"letter"}},
		} {
			want, err := retryjob.GroupsOf(e.List(t.Context(), f))
			require.NoError(t, err)
			got, err := e.Groups(t.Context(), f)
			require.NoError(t, err)
			text := func(groups []retryjob.Group) (all []string) {
				for _, g := range groups {
					all = append(all, fmt.Sprint(g.Status, g.Kind, g.Policy, g.Reason, g.Cause, g.Jobs, g.Oldest.UTC(), g.Newest.JobID, g.Newest.Payload == nil))
				}
				slices.Sort(all)
				return all
			}
			require.Equal(t, text(want), text(got), name)
		}

		groups, err := e.Groups(t.Context(), retryjob.Filter{})
		require.NoError(t, err)
		failures := retryjob.FailuresOf(groups, retryjob.DeadLettered)
		require.Len(t, failures, 2)
		require.Equal(t, []any{6, "mail", retry.TerminalError, "410", "status 410"},
			[]any{failures[0].Jobs, failures[0].Kind, failures[0].Reason, failures[0].Cause, failures[0].Err})
		require.Equal(t, []any{3, "fax", retry.AttemptsExhausted, "503", "status 503"},
			[]any{failures[1].Jobs, failures[1].Kind, failures[1].Reason, failures[1].Cause, failures[1].Err})

		require.NoError(t, retryjob.PurgeOne(t.Context(), e, "ok-0"))
		require.ErrorIs(t, retryjob.PurgeOne(t.Context(), e, "ok-0"), retryjob.ErrUnknownJob)
		require.EqualError(t, retryjob.PurgeOne(t.Context(), e, "down-4"), "retryjob: the job is waiting_retry, and only jobs that have ended are purged")
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = e.Groups(gone, retryjob.Filter{})
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestAListThatFailsHasNoGroups(t *testing.T) {
	errDown := errors.New("down")
	var list iter.Seq2[retryjob.Info, error] = func(yield func(retryjob.Info, error) bool) {
		read := retryjob.Info{Record: retryjob.Record{JobID: "read", Status: retryjob.Succeeded}}
		_ = yield(read, nil) && yield(retryjob.Info{}, errDown)
	}
	groups, err := retryjob.GroupsOf(list)
	require.ErrorIs(t, err, errDown)
	require.Empty(t, groups)
}

func TestParseFilter(t *testing.T) {
	ok, err := retryjob.ParseFilter(map[string][]string{
		"status": {"dead_letter", "expired"}, "reason": {"ttl_elapsed"}, "policy": {"p"}, "kind": {"mail"}, "tag": {"a"}, "in-doubt": {"yes"},
		"since": {"7d"}, "until": {epoch.Format(time.RFC3339)}, "page": {"2"},
	}, epoch)
	require.NoError(t, err)
	require.Equal(t, retryjob.Filter{
		Statuses: []retryjob.Status{retryjob.DeadLettered, retryjob.Expired}, Reasons: []retry.Reason{retry.TTLElapsed},
		Policies: []string{"p"}, Kinds: []string{"mail"}, Tags: []string{"a"}, InDoubt: retryjob.OnlyInDoubt, Since: epoch.Add(-7 * 24 * time.Hour), Until: epoch,
	}, ok)
	require.Len(t, retryjob.FilterKeys(), 9)
	for text, want := range map[string]retryjob.Doubt{"": 0, "yes": retryjob.OnlyInDoubt, "no": retryjob.NotInDoubt, "no,yes": retryjob.InDoubtToo} {
		f, err := retryjob.ParseFilter(map[string][]string{"in-doubt": strings.FieldsFunc(text, func(r rune) bool { return r == ',' })}, epoch)
		require.NoError(t, err)
		require.Equal(t, retryjob.Filter{InDoubt: want}, f)
	}

	f, err := retryjob.ParseFilter(map[string][]string{"since": {"90m"}}, epoch)
	require.NoError(t, err)
	require.Equal(t, epoch.Add(-90*time.Minute), f.Since)
	f, err = retryjob.ParseFilter(map[string][]string{"since": {"40000d"}}, epoch)
	require.NoError(t, err)
	require.Equal(t, epoch.Add(-40_000*24*time.Hour), f.Since)

	for _, row := range []struct {
		values map[string][]string
		want   string
	}{
		{map[string][]string{"status": {"dead"}}, `status "dead" is not one of `},
		{map[string][]string{"in-doubt": {"maybe"}}, `in-doubt "maybe" is not one of yes, no`},
		{map[string][]string{"reason": {"old"}}, `reason "old" is not one of `},
		{map[string][]string{"since": {"yesterday"}}, `since "yesterday" is neither a time ago (90m, 24h, 7d) nor a time as in RFC 3339`},
		{map[string][]string{"until": {"-5m"}}, `until "-5m" is neither a time ago`},
		{map[string][]string{"since": {"40001d"}}, `since "40001d" is neither a time ago`},
		{map[string][]string{"since": {"1h"}, "until": {"2h"}}, `until "2h" is not after since 1h`},
		{map[string][]string{"since": {"1h"}, "until": {"60m"}}, `until "60m" is not after since 1h`},
	} {
		_, err := retryjob.ParseFilter(row.values, epoch)
		require.ErrorContains(t, err, row.want)
		var field *retry.FieldError
		require.ErrorAs(t, err, &field)
	}
}
