package retryriver_test

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
	"github.com/retrygo/retry/retryjob/jobtest"
)

// TestMain hides River's log messages about databases that are taken away, and runs tests that wait for a rescuer in
// parallel.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	code := m.Run()
	for _, end := range slices.Backward(shared.end) {
		end()
	}
	os.Exit(code)
}

// A scenario plays in seconds, since River may be 100 ms late. Attempts may start much later, as many scenarios share a
// machine that may be busy with other things too: being late is no fault of the adapter, and being early is checked.
const (
	unit = time.Second
	late = 10 * time.Second
)

// lives holds the data of the suite's engines.
type lives struct {
	mu    sync.Mutex
	of    map[retryjob.Queue]life
	reach func(t *testing.T, place string, c retryjob.Options, g *gate) (q *retryriver.Queue, cut func(), err error)
}

// life is the location of an engine's data, and how to take the data away.
type life struct {
	place  string
	config retryjob.Options
	cut    func()
	gate   *gate
}

// gate is passed by an engine each time it uses its database. While the gate is shut, the engine waits.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // nil while it is open
}

// pass returns when the gate is open.
func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut == nil {
		return nil
	}
	select {
	case <-shut:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close shuts the gate until open is called.
func (g *gate) close() (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	shut := make(chan struct{})
	g.shut = shut
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.shut = nil
		close(shut)
	})
}

// open opens an engine.
func (l *lives) open(t *testing.T, place string, c retryjob.Options) retryjob.Queue {
	g := &gate{}
	q, cut, err := l.reach(t, place, c, g)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close() })
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[retryjob.Queue]life{}
	}
	l.of[q] = life{place, c, cut, g}
	return q
}

// crash ends an engine as if its process had died, and opens another one in its place.
func (l *lives) crash(t *testing.T, q retryjob.Queue) retryjob.Queue {
	l.mu.Lock()
	a := l.of[q]
	l.mu.Unlock()
	a.cut()
	abandoned := q.(*retryriver.Queue).Abandon()
	t.Cleanup(func() { <-abandoned }) // before q is closed, which waits for it with a lock
	return l.open(t, a.place, a.config)
}

// suspend blocks an engine's access to its data, and opens another one on it.
func (l *lives) suspend(t *testing.T, q retryjob.Queue) (retryjob.Queue, func()) {
	l.mu.Lock()
	a := l.of[q]
	l.mu.Unlock()
	resume := a.gate.close()
	t.Cleanup(resume)
	return l.open(t, a.place, a.config), resume
}

// TestConformanceSQLite plays in virtual time: SQLite is in this process.
func TestConformanceSQLite(t *testing.T) {
	if raceDetector {
		t.Skip("with the race detector SQLite takes ten times as long")
	}
	t.Parallel()
	l := lives{reach: func(t *testing.T, path string, c retryjob.Options, g *gate) (*retryriver.Queue, func(), error) {
		return retryriver.NewMortalSQLite(t.Context(), path, c, g.pass)
	}}
	jobtest.Run(t, jobtest.Harness{
		Unit: unit, Late: 5*time.Second + 100*time.Millisecond, // River looks for jobs that are due later every five seconds
		Bubble: synctest.Test, Parallel: true, Crash: l.crash, Suspend: l.suspend,
		New: func(t *testing.T, c retryjob.Options) retryjob.Queue {
			return l.open(t, filepath.Join(t.TempDir(), "jobs.db"), c)
		},
	})
}

func TestConformancePostgres(t *testing.T) {
	if raceDetector {
		t.Skip("with the race detector due times in real time are missed")
	}
	t.Parallel()
	l := lives{reach: func(t *testing.T, dsn string, c retryjob.Options, g *gate) (*retryriver.Queue, func(), error) {
		config, err := pgxpool.ParseConfig(dsn)
		require.NoError(t, err)
		w := &wires{}
		config.ConnConfig.DialFunc = w.dial
		config.PrepareConn = func(ctx context.Context, _ *pgx.Conn) (bool, error) { return true, g.pass(ctx) }
		pool, err := pgxpool.NewWithConfig(context.Background(), config)
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		q, err := retryriver.NewHastyPostgres(t.Context(), pool, c)
		return q, w.die, err
	}}
	jobtest.Run(t, jobtest.Harness{
		Unit: unit, Late: late, Parallel: true, Crash: l.crash, Suspend: l.suspend,
		New: func(t *testing.T, c retryjob.Options) retryjob.Queue {
			return l.open(t, newPostgres(t).Config().ConnString(), c)
		},
	})
}
