package retryriver_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// crowd is a database with more jobs than an engine could process during a test.
type crowd struct {
	database string // for OpenStore
	exec     func(query string, args ...any)
	query    func(query string, args ...any) [][]any
	explain  func(query string, args ...any) []string
	migrate  func()
	copies   string // the statement that copies the existing jobs, a second apart
}

// key returns the unique key of an ID in SQL.
func (c *crowd) key(id string) string {
	if c.onSQLite() {
		return fmt.Sprintf("unhex('%x')", retryriver.KeyOf(id))
	}
	return fmt.Sprintf(`'\x%x'::bytea`, retryriver.KeyOf(id))
}

// keyIndex returns the condition of the index of unique keys.
func (c *crowd) keyIndex() string { return retryriver.KeyIndex(c.onSQLite()) }

func (c *crowd) onSQLite() bool { return !strings.HasPrefix(c.database, "postgres:") }

// store opens the database as a tool does.
func (c *crowd) store(tb testing.TB) *retryriver.Store {
	tb.Helper()
	s, err := retryriver.OpenStore(tb.Context(), c.database)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, s.Close()) })
	return s
}

// counted returns the number of jobs that a filter selects.
func counted(tb testing.TB, s *retryriver.Store, f retryjob.Filter) (jobs int) {
	tb.Helper()
	counts, err := s.Count(tb.Context(), f)
	require.NoError(tb, err)
	for _, tally := range counts {
		jobs += tally.Jobs
	}
	return jobs
}

// crowds calls f with a crowd on each database.
func crowds[TB testing.TB](tb TB, run func(name string, f func(TB)) bool, f func(tb TB, c *crowd)) {
	run("SQLite", func(tb TB) {
		file := filepath.Join(tb.TempDir(), "jobs.db")
		db := openSQLite(tb, file)
		seed(tb, func(c retryjob.Options) (*retryriver.Queue, error) {
			return retryriver.NewSQLite(tb.Context(), file, c)
		})
		f(tb, &crowd{file, func(query string, args ...any) {
			_, err := db.ExecContext(tb.Context(), query, args...)
			require.NoError(tb, err)
		}, func(query string, args ...any) (table [][]any) {
			rows, err := db.QueryContext(tb.Context(), query, args...)
			require.NoError(tb, err)
			defer rows.Close()
			columns, err := rows.Columns()
			require.NoError(tb, err)
			for rows.Next() {
				line, into := make([]any, len(columns)), make([]any, len(columns))
				for i := range line {
					into[i] = &line[i]
				}
				require.NoError(tb, rows.Scan(into...))
				table = append(table, line)
			}
			require.NoError(tb, rows.Err())
			return table
		}, nil, func() {
			again, err := retryriver.OpenSQLite(tb.Context(), file)
			require.NoError(tb, err)
			require.NoError(tb, again.Close())
		}, `WITH RECURSIVE copy(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM copy WHERE n < ?1)
			INSERT INTO river_job (args, attempt, attempted_at, attempted_by, created_at, errors, finalized_at, kind, metadata,
				priority, queue, state, scheduled_at, tags, unique_key, unique_states, max_attempts)
			SELECT args, attempt, attempted_at, attempted_by, created_at, errors, finalized_at,
				CASE WHEN n % 10000 = 0 THEN 'rare' ELSE 'kind' || (n % 5) END,
				jsonb_set(metadata, '$.retryjob[0].job', (metadata->>'$.retryjob[0].job') || '-' || n,
					'$.retryjob[0].policy', CASE WHEN n % 10000 = 0 THEN 'rare' ELSE 'policy' || (n % 7) END,
					'$.retryjob[0].changed', (unixepoch(ended) - n) * 1000000,
					CASE state WHEN 'cancelled' THEN '$.retryjob[0].ended' ELSE '$.retryjob[0].history[0].end' END,
						strftime('%Y-%m-%dT%H:%M:%SZ', ended, format('-%d seconds', n)),
					CASE state WHEN 'cancelled' THEN '$.retryjob[0].reason' ELSE '$.retryjob[0].correlation' END,
						CASE WHEN n % 10000 = 0 THEN 'budget_exhausted' ELSE 'attempts_exhausted' END),
				priority, queue, state, datetime(scheduled_at, '+1 hour'), CASE WHEN n % 10007 = 0 THEN jsonb('["a","rare_tag"]') ELSE tags END, unique_key_of((metadata->>'$.retryjob[0].job') || '-' || n), unique_states, max_attempts
			FROM copy, (SELECT *, coalesce(metadata->>'$.retryjob[0].ended', metadata->>'$.retryjob[0].history[0].end') AS ended FROM river_job)`})
	})
	run("PostgreSQL", func(tb TB) {
		pool := newPostgres(tb)
		seed(tb, func(c retryjob.Options) (*retryriver.Queue, error) {
			return retryriver.NewPostgres(tb.Context(), pool, c)
		})
		f(tb, &crowd{pool.Config().ConnString(), func(query string, args ...any) {
			_, err := pool.Exec(tb.Context(), query, args...)
			require.NoError(tb, err)
		}, func(query string, args ...any) (table [][]any) {
			rows, err := pool.Query(tb.Context(), query, args...)
			require.NoError(tb, err)
			defer rows.Close()
			for rows.Next() {
				line, err := rows.Values()
				require.NoError(tb, err)
				table = append(table, line)
			}
			require.NoError(tb, rows.Err())
			return table
		}, func(query string, args ...any) (plan []string) {
			require.NoError(tb, pgx.BeginFunc(tb.Context(), pool, func(tx pgx.Tx) error {
				_, err := tx.Exec(tb.Context(), "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off") // the table is small
				require.NoError(tb, err)
				rows, err := tx.Query(tb.Context(), "EXPLAIN "+query, args...)
				require.NoError(tb, err)
				plan, err = pgx.CollectRows(rows, pgx.RowTo[string])
				return err
			}))
			return plan
		}, func() { require.NoError(tb, retryriver.MigratePostgres(tb.Context(), pool)) }, `INSERT INTO river_job (args, attempt, attempted_at, attempted_by, created_at, errors, finalized_at, kind, metadata,
				priority, queue, state, scheduled_at, tags, unique_key, unique_states, max_attempts)
			SELECT args, attempt, attempted_at, attempted_by, created_at, errors, finalized_at,
				CASE WHEN n % 10000 = 0 THEN 'rare' ELSE 'kind' || (n % 5) END,
				jsonb_build_object('retryjob', jsonb_build_array((metadata#>'{retryjob,0}') || jsonb_build_object(
					'job', (metadata#>>'{retryjob,0,job}') || '-' || n,
					'policy', CASE WHEN n % 10000 = 0 THEN 'rare' ELSE 'policy' || (n % 7) END,
					'changed', (extract(epoch from ended)::bigint - n) * 1000000)
					|| CASE WHEN state = 'cancelled' THEN jsonb_build_object(
						'ended', ended - n * interval '1 second',
						'reason', CASE WHEN n % 10000 = 0 THEN 'budget_exhausted' ELSE metadata#>>'{retryjob,0,reason}' END)
					ELSE jsonb_build_object('history', jsonb_build_array((metadata#>'{retryjob,0,history,0}') || jsonb_build_object(
						'end', ended - n * interval '1 second'))) END)),
				priority, queue, state, scheduled_at + interval '1 hour', CASE WHEN n % 10007 = 0 THEN '{a,rare_tag}' ELSE tags END,
				'retryjob'::bytea || sha256(convert_to((metadata#>>'{retryjob,0,job}') || '-' || n, 'UTF8')), unique_states, max_attempts
			FROM generate_series(1, $1::int) AS n, (SELECT *, date_trunc('second', coalesce(
				metadata#>>'{retryjob,0,ended}', metadata#>>'{retryjob,0,history,0,end}')::timestamptz) AS ended FROM river_job) AS made`})
	})
}

// seed creates a job that waits for its second attempt, and a dead letter.
func seed(tb testing.TB, open func(retryjob.Options) (*retryriver.Queue, error)) {
	q, err := open(retryjob.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{
			"slow": {MaxAttempts: 2, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Hour}}, "once": {MaxAttempts: 1},
		}),
		Handlers: map[string]retryjob.Handler{"kind": func(context.Context, retryjob.Job) error { return errors.New("503 from the receiver") }},
	})
	require.NoError(tb, err)
	for id, policy := range map[string]string{"waits": "slow", "dead": "once"} {
		_, err := q.Enqueue(tb.Context(), retryjob.Job{ID: id, Kind: "kind", Policy: policy, Payload: []byte(`{"to": "a receiver", "number": 17}`)})
		require.NoError(tb, err)
	}
	_, err = q.Wait(tb.Context(), "dead")
	require.NoError(tb, err)
	require.Eventually(tb, func() bool {
		i, err := q.Get(tb.Context(), "waits")
		return err == nil && i.Status == retryjob.WaitingRetry
	}, patience, 10*time.Millisecond)
	require.NoError(tb, q.Close())
}

// lists are the requests made to a database with many jobs.
var lists = []struct {
	name   string
	filter retryjob.Filter
}{
	{"all", retryjob.Filter{}},
	{"waiting", retryjob.Filter{Statuses: []retryjob.Status{retryjob.WaitingRetry}}},
	{"dead", retryjob.Filter{Statuses: []retryjob.Status{retryjob.DeadLettered}}},
	{"a status that none has", retryjob.Filter{Statuses: []retryjob.Status{retryjob.Expired}}},
	{"in doubt", retryjob.Filter{InDoubt: retryjob.OnlyInDoubt}},
	{"not in doubt", retryjob.Filter{InDoubt: retryjob.NotInDoubt, Statuses: []retryjob.Status{retryjob.DeadLettered}}},
	{"a kind", retryjob.Filter{Kinds: []string{"kind3"}}},
	{"kinds", retryjob.Filter{Kinds: []string{"kind1", "kind3", "rare"}}},
	{"a rare kind", retryjob.Filter{Kinds: []string{"rare"}}},
	{"a kind that none has", retryjob.Filter{Kinds: []string{"nothing"}}},
	{"a rare policy", retryjob.Filter{Policies: []string{"rare"}}},
	{"a rare reason", retryjob.Filter{Reasons: []retry.Reason{retry.BudgetExhausted}}},
	{"a reason that none has", retryjob.Filter{Reasons: []retry.Reason{retry.RetriesDisabled}}},
	{"a reason and a policy", retryjob.Filter{Reasons: []retry.Reason{retry.AttemptsExhausted}, Policies: []string{"policy3"}}},
	{"a reason and a rare policy", retryjob.Filter{Reasons: []retry.Reason{retry.AttemptsExhausted}, Policies: []string{"rare"}}},
	{"a rare tag", retryjob.Filter{Tags: []string{"rare_tag"}}},
	{"a tag that none has", retryjob.Filter{Tags: []string{"rare"}}},
	{"a kind and a rare tag", retryjob.Filter{Kinds: []string{"kind3"}, Tags: []string{"rare_tag"}}},
	{"a kind and a rare policy", retryjob.Filter{Kinds: []string{"kind3"}, Policies: []string{"rare"}}},
	{"dead of a kind and a policy", retryjob.Filter{
		Statuses: []retryjob.Status{retryjob.DeadLettered}, Kinds: []string{"kind3"}, Policies: []string{"policy3"},
	}},
	{"dead, a day ago", retryjob.Filter{Statuses: []retryjob.Status{retryjob.DeadLettered}, Until: time.Now().Add(-24 * time.Hour)}},
	{"all of an hour, a day ago", retryjob.Filter{Since: time.Now().Add(-25 * time.Hour), Until: time.Now().Add(-24 * time.Hour)}},
}

// BenchmarkLists measures a page of a list with 100,000 waiting jobs and 100,000 dead letters, a Get of an unknown ID,
// lists by ID, counts and changes. "bare" is a SELECT of the rows that the page has.
//
//	go test -C contrib/retryriver -run '^$' -bench Lists -benchtime 5x
func BenchmarkLists(b *testing.B) {
	crowds(b, b.Run, func(b *testing.B, c *crowd) {
		c.exec(c.copies, 100_000)
		s := c.store(b)
		run := func(name string, f func()) {
			b.Run(name, func(b *testing.B) {
				for b.Loop() {
					f()
				}
			})
		}
		bare := func(most int, query string) func() {
			return func() { require.LessOrEqual(b, len(c.query(query)), most) }
		}
		for _, row := range lists {
			run(row.name, func() { page(b, s.List(b.Context(), row.filter), 50) })
			var numbers []string
			for _, id := range page(b, s.List(b.Context(), row.filter), 50) {
				numbers = append(numbers, fmt.Sprint(c.query("SELECT id FROM river_job WHERE " + c.keyIndex() + " AND unique_key = " + c.key(id))[0][0]))
			}
			run(row.name+", bare", bare(50, "SELECT * FROM river_job WHERE id IN (0"+strings.Join(append([]string{""}, numbers...), ",")+")"))
		}
		for _, n := range []int{2, 1000, 10_000, 40_000} {
			var ids, quoted []string
			for i := range n {
				ids = append(ids, fmt.Sprintf("dead-%d", 2*i+1))
				quoted = append(quoted, c.key(ids[i]))
			}
			run(fmt.Sprint(n, " IDs"), func() { require.Len(b, page(b, s.List(b.Context(), retryjob.Filter{IDs: ids}), n), n) })
			run(fmt.Sprint(n, " IDs, bare"), bare(n, "SELECT * FROM river_job WHERE "+c.keyIndex()+" AND unique_key IN ("+strings.Join(quoted, ",")+")"))
			run(fmt.Sprint(n, " IDs, Count"), func() { counted(b, s, retryjob.Filter{IDs: ids}) })
		}
		run("pages 999 and 1000", func() {
			page(b, s.List(b.Context(), retryjob.Filter{Until: time.Now().Add(-50_000 * time.Second)}), 100)
		})
		run("Count, bare", bare(8, "SELECT state, count(*) FROM river_job GROUP BY state"))
		run("Count", func() { require.Equal(b, 200_002, counted(b, s, retryjob.Filter{})) })
		run("Groups of dead letters", func() {
			_, err := s.Groups(b.Context(), retryjob.Filter{Statuses: []retryjob.Status{retryjob.DeadLettered}})
			require.NoError(b, err)
		})
		run("Count of an hour", func() {
			counted(b, s, retryjob.Filter{Since: time.Now().Add(-25 * time.Hour), Until: time.Now().Add(-24 * time.Hour)})
		})
		for name, change := range map[string]func(context.Context, retryjob.Filter) (int, error){"ReplayAll": s.ReplayAll, "Purge": s.Purge} {
			run(name+" of 1,000", func() {
				n, err := change(b.Context(), retryjob.Filter{Limit: 1000})
				require.NoError(b, err)
				require.Equal(b, 1000, n)
			})
		}
		run("Get of an unknown ID", func() {
			_, err := s.Get(b.Context(), "unknown")
			require.ErrorIs(b, err, retryjob.ErrUnknownJob)
		})
	})
}

// TestListsReadAnIndex: no query sorts or reads a whole table. Each part of a page reads its rows from an index in the
// order of the list, and there are at most as many parts as the page has rows.
func TestListsReadAnIndex(t *testing.T) {
	crowds(t, t.Run, func(t *testing.T, c *crowd) {
		for _, row := range lists {
			sorted := 1
			if len(row.filter.Statuses) == 0 {
				sorted = 3 // the running jobs, the others, and both
			}
			for _, ask := range []func(bool, retryjob.Filter) (string, []any){retryriver.PageQuery, retryriver.CountQuery} {
				text, args := ask(c.onSQLite(), row.filter)
				if c.onSQLite() {
					plan := ""
					for _, line := range c.query("EXPLAIN QUERY PLAN "+text, args...) {
						plan += fmt.Sprintln(line[3])
					}
					require.NotContains(t, plan, "SCAN river_job", text)
					require.NotContains(t, plan, "SCAN x", text)
					require.Contains(t, plan, "SEARCH river_job USING INDEX retryjob_", plan)
					require.LessOrEqual(t, strings.Count(plan, "USE TEMP B-TREE"), max(1, 2*(sorted-1)), "%s\n%s", text, plan) // each part, and again to merge it
					continue
				}
				plan := ""
				for _, line := range c.explain(text, args...) {
					plan += line + "\n"
				}
				require.NotContains(t, plan, "Seq Scan", text)
				require.Contains(t, plan, " using retryjob_", text)
				require.LessOrEqual(t, strings.Count(plan, "Sort Key"), sorted, "%s\n%s", text, plan)
				var cost float64
				_, err := fmt.Sscanf(plan[strings.Index(plan, "..")+2:], "%f", &cost)
				require.NoError(t, err)
				require.Less(t, cost, 1e5, "PostgreSQL would compile the query first, which takes longer than the query")
			}
		}
	})
}

// TestTheIndexesHaveWhatTheJobsSay: lists are filtered and sorted by the values they show, no matter which program wrote
// River's rows.
func TestTheIndexesHaveWhatTheJobsSay(t *testing.T) {
	crowds(t, t.Run, func(t *testing.T, c *crowd) {
		c.exec(c.copies, 14)
		for _, change := range []string{
			"state = 'running', attempt = attempt + 1, attempted_at = CURRENT_TIMESTAMP",
			"state = 'completed', attempt = attempt + 1, finalized_at = CURRENT_TIMESTAMP",
			"state = 'discarded', attempt = attempt + 1, finalized_at = CURRENT_TIMESTAMP",
			"state = 'cancelled', finalized_at = CURRENT_TIMESTAMP",
			"state = 'available', attempt = attempt + 1",
		} {
			c.exec("UPDATE river_job SET " + change + " WHERE id IN (SELECT id FROM river_job WHERE state IN ('scheduled', 'retryable') ORDER BY id LIMIT 2)")
		}
		c.exec("DELETE FROM river_job WHERE id IN (SELECT min(id) FROM river_job WHERE state = 'cancelled')")
		s := c.store(t)
		check := func() {
			known := map[string][]any{}
			for _, line := range c.query("SELECT metadata->'retryjob'->0->>'job', x.kind, policy, status, reason, changed FROM " + retryriver.JobsQuery(c.onSQLite(), "row_id", "kind", "policy", "status", "reason", "changed") + " AS x JOIN river_job ON id = row_id") {
				known[line[0].(string)] = line[1:]
			}
			tallies, policies := map[retryjob.Status]retryjob.Tally{}, map[string]bool{}
			last := time.Now().Add(time.Hour)
			for i, err := range s.List(t.Context(), retryjob.Filter{PageSize: 3}) {
				require.NoError(t, err)
				reason := ""
				if i.Reason != 0 {
					reason = i.Reason.Error()
				}
				if i.Status != retryjob.Leased {
					require.Equal(t, []any{i.Kind, i.Policy, i.Status.String(), reason, i.Changed().UnixMicro()}, known[i.JobID], i.JobID)
				}
				require.False(t, i.Changed().After(last))
				last = i.Changed()
				tally := tallies[i.Status]
				tally.Add(&i)
				tallies[i.Status], policies[i.Policy] = tally, true
				delete(known, i.JobID)
			}
			require.Empty(t, known)
			counts, err := s.Count(t.Context(), retryjob.Filter{})
			require.NoError(t, err)
			require.Len(t, counts, len(tallies))
			for status, want := range tallies {
				require.Equal(t, want.Jobs, counts[status].Jobs, status)
				require.WithinDuration(t, want.Oldest, counts[status].Oldest, 10*time.Millisecond, status) // the rounding of a due time
			}
			require.Len(t, tallies, 5)
			texts := func(groups []retryjob.Group, err error) (texts []string) {
				require.NoError(t, err)
				for _, g := range groups {
					texts = append(texts, fmt.Sprint(g.Status, g.Kind, g.Policy, g.Reason, g.Cause, g.Jobs, g.Newest.JobID))
				}
				return texts
			}
			for _, filter := range []retryjob.Filter{{}, {Policies: slices.Collect(maps.Keys(policies))}} {
				require.ElementsMatch(t, texts(retryjob.GroupsOf(s.List(t.Context(), filter))), texts(s.Groups(t.Context(), filter)))
			}
		}
		check()

		t.Run("the lists are the same if the indexes are made later", func(t *testing.T) {
			c.exec("DROP INDEX retryjob_changed")
			c.exec("DROP INDEX retryjob_group")
			_, err := retryriver.OpenStore(t.Context(), c.database)
			require.ErrorIs(t, err, retryriver.ErrNotMigrated)
			_, err = s.Get(t.Context(), "dead")
			require.ErrorIs(t, err, retryjob.ErrUnknownJob, "it was deleted")
			_, err = s.Count(t.Context(), retryjob.Filter{})
			if c.onSQLite() { // PostgreSQL reads the whole table
				require.ErrorIs(t, err, retryriver.ErrNotMigrated)
			} else {
				require.NoError(t, err)
			}
			c.migrate()
			check()
		})
	})
}

func TestAPageFollowsItsCursor(t *testing.T) {
	crowds(t, t.Run, func(t *testing.T, c *crowd) {
		c.exec(c.copies, 9)
		status := "jsonb_set(metadata, '{retryjob,0,status}', '\"waiting_retry\"')"
		if c.onSQLite() {
			status = "jsonb_set(metadata, '$.retryjob[0].status', 'waiting_retry')"
		}
		c.exec("UPDATE river_job SET state = 'discarded', metadata = " + status + ", finalized_at = CURRENT_TIMESTAMP WHERE state = 'cancelled'") // all at once
		s := c.store(t)
		all := page(t, s.List(t.Context(), retryjob.Filter{}), 100)
		require.Len(t, all, 20)
		var paged []string
		f := retryjob.Filter{Limit: 3}
		for more := true; more; {
			more = false
			for i, err := range s.List(t.Context(), f) {
				require.NoError(t, err)
				paged, f.After, more = append(paged, i.JobID), i.Cursor(), true
			}
		}
		require.Equal(t, all, paged)
		some := []string{all[17], all[3], "nobody's", all[3]}
		require.Equal(t, []string{all[3], all[17]}, page(t, s.List(t.Context(), retryjob.Filter{IDs: some}), 100))
		require.Equal(t, 2, counted(t, s, retryjob.Filter{IDs: some}))
	})
}

// page reads the beginning of a list and returns its IDs.
func page(tb testing.TB, list iter.Seq2[retryjob.Info, error], most int) (ids []string) {
	for i, err := range list {
		require.NoError(tb, err)
		if ids = append(ids, i.JobID); len(ids) == most {
			break
		}
	}
	return ids
}
