package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryjobs/internal/cli"
	"github.com/retrygo/retry/retryjob"
)

// TestAWrongCommandLine lists command lines that are refused before a database is opened.
func TestAWrongCommandLine(t *testing.T) {
	noFilter := func(command string) string {
		return "no filter selects the jobs to " + command + ": give IDs or a filter (--status, --reason, --cause, --policy, --kind, --tag, --in-doubt, --since, --until), or --all for all of them"
	}
	noTerminal := func(command string) string { return command + " needs a terminal to ask for confirmation, or --yes" }
	notBoth := func(command string) string {
		return command + " takes IDs or a filter, not both; --all and --limit go with a filter"
	}
	for _, row := range []struct{ args, err string }{
		{"lists", `unknown command "lists" for "retryjobs"; Did you mean this?; list`},
		{"canel", `unknown command "canel" for "retryjobs"; Did you mean this?; cancel`},
		{"frobnicate", `unknown command "frobnicate" for "retryjobs"`},
		{"list jobs", `unknown command "jobs" for "retryjobs list"`},
		{"list --foo", `unknown flag: --foo`},
		{"list --status running", `--status "running" is not one of pending, leased, waiting_retry, succeeded, dead_letter, expired, failed_no_retries, canceled`},
		{"list --reason because", `--reason "because" is not one of terminal_error, attempts_exhausted, budget_exhausted, ttl_elapsed, deadline_passed, deadline_too_near, hint_too_long, retries_disabled, caller_canceled`},
		{"list --since yesterday", `--since "yesterday" is neither a time ago (90m, 24h, 7d) nor a time as in RFC 3339 (2026-11-21T12:00:00Z)`},
		{"list --until 2026-11-21", `--until "2026-11-21" is neither a time ago (90m, 24h, 7d) nor a time as in RFC 3339 (2026-11-21T12:00:00Z)`},
		{"list --since=", "--since has no value"},
		{"list --since 1h --until 1d", `--until "1d" is not after since 1h`},
		{"list --limit -1", `--limit -1 is below 0`},
		{"list --limit many", `invalid argument "many" for "--limit" flag: strconv.ParseInt: parsing "many": invalid syntax`},
		{"list --status=", `--status has no value`},
		{"list --policy=", `--policy has no value`},
		{"list --kind a,,b", `--kind has no value`},
		{"show", `accepts 1 arg(s), received 0`},
		{"show a b", `accepts 1 arg(s), received 2`},
		{"replay", noFilter("replay")},
		{"replay a --all", notBoth("replay")},
		{"replay a --policy p", notBoth("replay")},
		{"replay a --limit 1", notBoth("replay")},
		{"replay --all", noTerminal("replay")},
		{"replay --all --limit 5", noTerminal("replay")},
		{"replay --limit 5", noFilter("replay")},
		{"replay --yes", noFilter("replay")},
		{"replay --all --policy=", `--policy has no value`},
		{"replay --all --status succeeded", `--status "succeeded" is not one of dead_letter, expired, failed_no_retries`},
		{"purge", noFilter("purge")},
		{"purge --yes", noFilter("purge")},
		{"purge --all", noTerminal("purge")},
		{"purge --policy p", noTerminal("purge")},
		{"purge a b", noTerminal("purge")},
		{"purge a --policy p", notBoth("purge")},
		{"purge a --rate 1", "unknown flag: --rate"},
		{"cancel", noFilter("cancel")},
		{"serve --addr :8080", `--addr ":8080" is not a loopback address, and the page has no login`},
		{"serve --addr 0.0.0.0:0", `--addr "0.0.0.0:0" is not a loopback address, and the page has no login`},
		{"serve --addr localhost", `--addr "localhost" is not host:port`},
		{"purge --policy=", `--policy has no value`},
		{"purge --status leased", `--status "leased" is not one of succeeded, dead_letter, expired, failed_no_retries, canceled`},
		{"stats --status leased", `unknown flag: --status`},
	} {
		t.Run(row.args, func(t *testing.T) {
			got := run(t, nil, strings.Fields(row.args)...)
			require.Equal(t, ran{Exit: cli.Usage, Err: got.Err}, got)
			first, second, _ := strings.Cut(got.Err, "\n")
			require.Equal(t, "retryjobs: "+row.err, first)
			require.Regexp(t, `^retryjobs: 'retryjobs( list| show| replay| cancel| purge| stats| serve)? --help' says more\n$`, second)
		})
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"help"}, {"replay", "--help"}} {
		got := run(t, nil, args...)
		require.Equal(t, ran{Out: got.Out}, got)
		require.Contains(t, got.Out, "RETRYJOBS_DATABASE")
		require.NotContains(t, got.Out, "jobs.db", "the value may hold a password")
	}
}

func TestAnUnknownJob(t *testing.T) {
	f := newFake(jobs()...)
	require.Equal(t, ran{cli.Failed, "", "retryjobs: job nope: retryjob: unknown job: never known here\n"}, run(t, f, "show", "nope"))
	require.Equal(t, ran{cli.Failed, "", "retryjobs: job a\\u001b[2Jb: retryjob: unknown job: never known here\n"}, run(t, f, "show", "a\x1b[2Jb"))
	require.Equal(t, 2, f.closed)
	f.broken = errBroken
	require.Equal(t, ran{cli.Failed, "", "retryjobs: job dead-1: the connection broke\n"}, run(t, f, "show", "dead-1"))
	require.Equal(t, ran{cli.Failed, "", "retryjobs: job dead-1: the connection broke\n"}, run(t, f, "replay", "dead-1"))
}

func TestADatabaseThatDoesNotClose(t *testing.T) {
	f := newFake(jobs()...)
	f.closing = errors.New("the disk is\nfull")
	require.Equal(t, ran{cli.Failed, "replayed dead-1\n", "retryjobs: the disk is; full\n"}, run(t, f, "replay", "dead-1"))
}

// full is a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestOutputThatIsNotWritten(t *testing.T) {
	for _, args := range []string{"list", "list --json", "show dead-1", "show dead-1 --json", "stats", "stats --json", "purge --all --yes", "replay dead-1", "cancel waiting-1", "serve"} {
		var err strings.Builder
		c := cli.Options{
			Open:   func(context.Context, string) (cli.Store, error) { return newFake(jobs()...), nil },
			Now:    func() time.Time { return now },
			Getenv: func(string) string { return "jobs.db" },
		}
		require.Equal(t, cli.Failed, cli.Run(t.Context(), c, strings.Fields(args), full{}, &err), args)
		require.Equal(t, "retryjobs: no space left\n", err.String(), args)
	}
}

func TestAnInterruptedCommandSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	got := runIn(ctx, cli.Options{
		Open: func(ctx context.Context, _ string) (cli.Store, error) {
			cancel()
			<-ctx.Done()
			return nil, fmt.Errorf("opening: %w", ctx.Err())
		},
		Now:    func() time.Time { return now },
		Getenv: func(string) string { return "jobs.db" },
	}, "stats")
	require.Equal(t, ran{cli.Failed, "", "retryjobs: interrupted: database jobs.db: opening: context canceled\n"}, got)
}

func TestADatabaseThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		got := runIn(t.Context(), cli.Options{
			Open: func(ctx context.Context, _ string) (cli.Store, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
			Now:    time.Now,
			Getenv: func(string) string { return "jobs.db" },
		}, "stats")
		require.Equal(t, ran{cli.Failed, "", "retryjobs: database jobs.db: no answer within 10s: context deadline exceeded\n"}, got)
		require.Equal(t, 10*time.Second, time.Since(start))
	})
}

// slow is a store that takes longer for a list than it may take to open.
type slow struct{ *fake }

func (s slow) Get(ctx context.Context, id string) (retryjob.Info, error) {
	select {
	case <-time.After(time.Minute):
		return s.fake.Get(ctx, id)
	case <-ctx.Done():
		return retryjob.Info{}, ctx.Err()
	}
}

func TestOnlyTheOpeningIsTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.Equal(t, cli.Done, run(t, slow{newFake(jobs()...)}, "show", "dead-1").Exit)
	})
}

func TestWhichDatabase(t *testing.T) {
	for _, row := range []struct {
		name, env string
		args      []string
		want      string
	}{
		{"the flag", "", []string{"stats", "--database", "a.db"}, "a.db"},
		{"the flag before the command", "", []string{"--database=a.db", "stats"}, "a.db"},
		{"the environment", "sqlite:b.db", []string{"stats"}, "sqlite:b.db"},
		{"the flag rather than the environment", "b.db", []string{"stats", "--database", "a.db"}, "a.db"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var opened string
			exit := cli.Run(t.Context(), cli.Options{
				Open: func(_ context.Context, database string) (cli.Store, error) {
					opened = database
					return newFake(), nil
				},
				Now: func() time.Time { return now },
				Getenv: func(name string) string {
					require.Equal(t, "RETRYJOBS_DATABASE", name)
					return row.env
				},
			}, row.args, io.Discard, io.Discard)
			require.Equal(t, cli.Done, exit)
			require.Equal(t, row.want, opened)
		})
	}
}
