package cli_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryjobs/internal/cli"
)

// openIn runs a command on a database that does not open, with err as the reason.
func openIn(t *testing.T, database string, err error, args ...string) ran {
	return runIn(t.Context(), cli.Options{
		Open:    func(context.Context, string) (cli.Store, error) { return nil, err },
		Migrate: func(context.Context, string) error { return err },
		Now:     func() time.Time { return now },
		Getenv:  func(string) string { return database },
	}, args...)
}

func TestNoDatabaseIsNamed(t *testing.T) {
	want := ran{cli.Usage, "", "retryjobs: no database is given: set --database or RETRYJOBS_DATABASE to a SQLite file or a postgres:// URL\n" +
		"retryjobs: 'retryjobs stats --help' says more\n"}
	require.Equal(t, want, openIn(t, "", nil, "stats"))
	require.Equal(t, want, openIn(t, "jobs.db", nil, "stats", "--database", ""), "a variable of a script that is not set")
}

func TestADatabaseThatDoesNotOpenIsNamed(t *testing.T) {
	commands := []string{"list", "show a", "replay a", "purge --all --yes", "cancel a", "serve", "stats", "migrate"}
	for database, label := range map[string]string{
		"jobs.db":           "jobs.db",
		"sqlite:a/jobs.db":  "sqlite:a/jobs.db",
		"sqlite:///jobs.db": "sqlite:///jobs.db",
		"C:\\jobs.db":       "C:\\jobs.db",
		"postgres://me:hush@h:5432/jobs?sslmode=disable": "postgres://me@h:5432/jobs",
		"postgresql://h/jobs":                            "postgresql://h/jobs",
		"postgres:///jobs?host=/run/postgresql":          "postgres:///jobs",
		"postgres://me:hush@a:1,b:2/jobs":                "postgres://me@a:1,b:2/jobs",
	} {
		for _, args := range commands {
			require.Equal(t, ran{cli.Failed, "", "retryjobs: database " + label + ": it is not there\n"},
				openIn(t, database, errors.New("it is not there"), strings.Fields(args)...), "%s: %s", args, database)
		}
	}
}

// TestAPasswordIsNeverShown uses a driver whose errors show the whole URL, and the password as the driver parsed it.
func TestAPasswordIsNeverShown(t *testing.T) {
	for _, row := range []struct{ name, database, password string }{
		{"plain", "postgres://me:hush@host/db", "hush"},
		{"of another scheme", "mysql://me:hush@host/db", "hush"},
		{"with a colon", "postgres://me:hush:hush@host/db", "hush:hush"},
		{"with an @", "postgres://me:hush@hush@host/db", "hush@hush"},
		{"escaped", "postgres://me:%68ush@host/db", "hush"},
		{"with what is escaped", "postgres://me:hush%2Fhush%40@host/db", "hush/hush@"},
		{"with a wrong escape", "postgres://me:hush%zz@host/db", "hush"},
		{"with a blank", "postgres://me:hush hush@host/db", "hush"},
		{"with a slash", "postgres://me:12/hush@host/db", "hush"},
		{"with a slash after text", "postgres://me:hush/12@host/db", "hush"},
		{"with a question mark", "postgres://me:12?hush@host/db", "hush"},
		{"with a hash", "postgres://me:12#hush@host/db", "hush"},
		{"with a line break", "postgres://me:hush\n@host/db", "hush"},
		{"in the query", "postgres://me@host/db?password=hush", "hush"},
		{"in the query, escaped", "postgres://me@host/db?password=%68ush+hush", "hush hush"},
		{"of a key file", "postgres://me@host/db?sslpassword=hush", "hush"},
		{"twice", "postgres://me:hushhush@host/db?password=hush", "hushhush"},
		{"with one slash", "postgres:/me:hush@host/db", "hush"},
		{"without slashes", "postgres:me:hush@host/db", "hush"},
		{"without a colon", "postgres//me:hush@host/db", "hush"},
		{"after a blank", " postgres:/me:hush@host/db", "hush"},
		{"without a scheme", "//me:hush@host/db", "hush"},
		{"without a scheme and slashes", "me:hush@host", "hush"},
		{"in capitals", "POSTGRES:/me:hush@host/db", "hush"},
		{"in key=value pairs", "host=h user=me password=hush", "hush"},
		{"in key=value pairs, spaced", "host=h user=me PassWord = hush", "hush"},
	} {
		t.Run(row.name, func(t *testing.T) {
			told := errors.New("cannot open " + row.database + ": " + row.password + " is wrong")
			for _, args := range [][]string{{"stats"}, {"stats", "--database", row.database}, {"migrate"}} {
				got := openIn(t, row.database, told, args...)
				require.NotEqual(t, cli.Done, got.Exit)
				require.Empty(t, got.Out)
				require.NotRegexp(t, "hush|%68", got.Err)
			}
		})
	}
	got := openIn(t, "jobs.db", nil, "postgres://me:hush@host/db")
	require.Equal(t, cli.Usage, got.Exit)
	require.NotContains(t, got.Err, "hush", "an argument where none belongs")
}

func TestADatabaseThatIsNeither(t *testing.T) {
	const neither = "the database must be a SQLite file (sqlite:PATH for an odd name) or a postgres:// URL"
	const ambiguous = "the postgres:// URL is malformed or ambiguous (in a password, all but letters and digits must be written as %XX)"
	for database, err := range map[string]string{
		"mysql://host/db":             neither,
		"host=h password=p":           neither,
		"postgres://me:%zz@host/db":   ambiguous,
		"postgres://me:1/2@host/db":   ambiguous,
		"postgres://me:1?2@host/db":   ambiguous,
		"postgres://host/db?user=a;b": ambiguous,
	} {
		require.Equal(t, ran{cli.Usage, "", "retryjobs: " + err + "\nretryjobs: 'retryjobs list --help' says more\n"},
			openIn(t, database, nil, "list"), database)
	}
	require.Equal(t, cli.Failed, openIn(t, "postgres://host:5432/db?user=a@b", errors.New("no"), "list").Exit, "an @ that is in its place")
}
