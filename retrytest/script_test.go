package retrytest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrytest"
)

// recorder is a test that continues after a failure.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	messages []string
	cleanups []func()
}

func (r *recorder) Helper()                   {}
func (r *recorder) Cleanup(f func())          { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Logf(f string, a ...any)   { r.say("log: " + fmt.Sprintf(f, a...)) }
func (r *recorder) Error(a ...any)            { r.say(fmt.Sprint(a...)) }
func (r *recorder) Errorf(f string, a ...any) { r.say(fmt.Sprintf(f, a...)) }
func (r *recorder) Fatalf(f string, a ...any) {
	r.say("fatal: " + fmt.Sprintf(f, a...))
	runtime.Goexit()
}
func (r *recorder) Failed() bool { return len(r.messages) > 0 }
func (r *recorder) say(message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, message)
}

// ended ends the test and returns its messages.
func (r *recorder) ended() []string {
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
	return r.messages
}

// here returns the file and the line that is n lines above its caller's.
func here(above int) string {
	_, _, line, _ := runtime.Caller(1)
	return fmt.Sprintf("script_test.go:%d", line-above)
}

var errDown = errors.New("down")

// bubble runs f as a subtest in virtual time.
func bubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func TestStep(t *testing.T) {
	limited := func(d time.Duration) func() (context.Context, context.CancelFunc) {
		return func() (context.Context, context.CancelFunc) { return context.WithTimeout(context.Background(), d) }
	}
	for _, row := range []struct {
		name  string
		step  retrytest.Step
		ctx   func() (context.Context, context.CancelFunc)
		want  error
		panic any
		took  time.Duration
	}{
		{"the zero Step succeeds at once", retrytest.Step{}, limited(time.Second), nil, nil, 0},
		{"the zero Step succeeds under a context that has ended", retrytest.Step{}, limited(0), nil, nil, 0},
		{"an error", retrytest.Step{Err: errDown}, limited(time.Second), errDown, nil, 0},
		{"an error after a while", retrytest.Step{Err: errDown, Takes: time.Minute}, limited(time.Hour), errDown, nil, time.Minute},
		{"a success after a while", retrytest.Step{Takes: time.Minute}, limited(time.Hour), nil, nil, time.Minute},
		{"a context that ends before", retrytest.Step{Err: errDown, Takes: time.Hour}, limited(time.Minute), context.DeadlineExceeded, nil, time.Minute},
		{"a context that ends at the same time comes late", retrytest.Step{Err: errDown, Takes: time.Minute}, limited(time.Minute), errDown, nil, time.Minute},
		{"a deaf one goes on", retrytest.Step{Err: errDown, Takes: time.Hour, IgnoreContext: true}, limited(time.Minute), errDown, nil, time.Hour},
		{"a hang", retrytest.Step{Hang: true}, limited(time.Minute), context.DeadlineExceeded, nil, time.Minute},
		{"a hang with an error", retrytest.Step{Hang: true, Err: errDown}, limited(time.Minute), errDown, nil, time.Minute},
		{"a panic", retrytest.Step{Panic: "boom"}, limited(time.Minute), nil, "boom", 0},
		{"a panic after a while", retrytest.Step{Panic: "boom", Takes: time.Second}, limited(time.Minute), nil, "boom", time.Second},
	} {
		bubble(t, row.name, func(t *testing.T) {
			fn := retrytest.Script(t, []retrytest.Step{row.step})
			ctx, cancel := row.ctx()
			defer cancel()
			began := time.Now()
			var err error
			panicked := func() (value any) {
				defer func() { value = recover() }()
				err = fn(ctx)
				return nil
			}()
			require.Equal(t, row.want, err)
			require.Equal(t, row.panic, panicked)
			require.Equal(t, row.took, time.Since(began))
		})
	}
}

func TestScript(t *testing.T) {
	atOnce := retry.Policy{MaxAttempts: 9, Backoff: retry.Backoff{Delays: []time.Duration{0}}}
	for _, row := range []struct {
		name  string
		steps []retrytest.Step
		calls int
		want  string // after the line of the script; empty means that the test passes
	}{
		{"used up", []retrytest.Step{{Err: errDown}, {}}, 2, ""},
		{"an empty script and no call", nil, 0, ""},
		{"a call too many", []retrytest.Step{{Err: errDown}, {}}, 3, "call 3 is beyond the last of 2 rows; 2 calls were made: row 1, row 2"},
		{"a call of an empty script", nil, 1, "call 1 is beyond the last of 0 rows; no call was made"},
		{"a call beyond rows with Times", []retrytest.Step{{Times: 3}, {}, {Times: 2}}, 7, "call 7 is beyond the last of 3 rows; 6 calls were made, the last: row 1, row 1, row 2, row 3, row 3"},
		{"a row left", []retrytest.Step{{Err: errDown}, {Err: errDown, Takes: time.Minute}}, 1,
			"row 2 of 2, {Err: down, Takes: 1m0s}, is left at the test's end; 1 call was made: row 1"},
		{"a row used in part", []retrytest.Step{{Times: 3}}, 2, "row 1 of 1, {Times: 3}, is left at the test's end; 2 calls were made: row 1, row 1"},
		{"a row used three times", []retrytest.Step{{Times: 3}, {}}, 4, ""},
		{"a row forever, not reached", []retrytest.Step{{}, {Times: retrytest.Forever}}, 1, ""},
		{"a row forever, reached often", []retrytest.Step{{}, {Times: retrytest.Forever}}, 100, ""},
		{"a row forever, not the last", []retrytest.Step{{Times: retrytest.Forever}, {}}, 100, "row 1 of 2, {Times: -1}, is left at the test's end; 100 calls were made, the last: row 1, row 1, row 1, row 1, row 1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var r recorder
			fn := retrytest.Script(&r, row.steps)
			line := here(1)
			for range row.calls {
				_ = fn(t.Context())
			}
			var want []string
			if row.want != "" {
				want = []string{"retrytest: " + line + ": " + row.want}
			}
			require.Equal(t, want, r.ended())
		})
	}
	t.Run("a call too many ends the run", func(t *testing.T) {
		var r recorder
		err := retry.Do(t.Context(), atOnce, retrytest.Errors(&r, errDown))
		require.ErrorIs(t, err, retry.TerminalError)
		require.ErrorContains(t, err, "retrytest: "+here(2)+": the script has ended")
		require.Len(t, r.ended(), 1)
	})
	t.Run("a test that has failed says nothing of the rest", func(t *testing.T) {
		var r recorder
		retrytest.Errors(&r, errDown)
		r.Errorf("first")
		require.Equal(t, []string{"first"}, r.ended())
	})
	bubble(t, "a hang that nothing ends, and one that nothing would end", func(t *testing.T) {
		alive, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, ctx := range []context.Context{alive, context.Background()} {
			var r recorder
			fn := retrytest.Script(&r, []retrytest.Step{{}, {Hang: true}})
			require.NoError(t, fn(ctx))
			require.EqualError(t, fn(ctx), "retrytest: the attempt hangs, and its context never ends")
			require.Equal(t, []string{"retrytest: " + here(3) + ": call 2, row 2, hangs, and its context never ends: " +
				"the policy needs an AttemptTimeout, or the caller a deadline"}, r.ended())
		}
	})
	bubble(t, "a request that hangs and nothing ends", func(t *testing.T) {
		for _, fault := range []retrytest.HTTPFault{retrytest.HangHeaders, retrytest.HangBody} {
			var r recorder
			server := retrytest.NewPipeServer(&r, []retrytest.Answer{{Fault: fault}})
			line := here(1)
			req, err := http.NewRequest("GET", "http://x/price", nil)
			require.NoError(t, err)
			resp, err := server.RoundTrip(req)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				require.NoError(t, resp.Body.Close())
			}
			require.Error(t, err)
			require.Equal(t, []string{"retrytest: " + line + ": call 1, GET /price (row 1), hangs, and its client never gives up: " +
				"the policy needs an AttemptTimeout, or the caller a deadline"}, r.ended())
		}
	})
	t.Run("the caller's rows are not kept", func(t *testing.T) {
		steps := []retrytest.Step{{Err: errDown}}
		fn := retrytest.Script(t, steps)
		steps[0].Err = nil
		require.Equal(t, errDown, fn(t.Context()))
	})
	t.Run("many at once use each row as often as it says", func(t *testing.T) {
		fn := retrytest.Script(t, []retrytest.Step{{Err: errDown, Times: 30}, {Times: 70}})
		var all sync.WaitGroup
		failed := make(chan struct{}, 100)
		for range 100 {
			all.Go(func() {
				if fn(t.Context()) != nil {
					failed <- struct{}{}
				}
			})
		}
		all.Wait()
		require.Len(t, failed, 30)
	})
}

func TestBadRowsEndTheTestAtOnce(t *testing.T) {
	const faults = `is not one of ["reset unread" "reset read" "hang headers" "hang body" "truncate" "garbage" "refuse dial" "no host" "fail tls"]`
	for _, row := range []struct {
		make func(testing.TB)
		want string
	}{
		{func(tb testing.TB) { retrytest.Script(tb, []retrytest.Step{{}, {Times: -7, Takes: -time.Minute}}) },
			"row 2: Times -7 is below -1, which is Forever; row 2: Takes -1m is negative"},
		{func(tb testing.TB) { retrytest.ScriptValue[int](tb, []retrytest.Step{{Takes: -7}, {Times: -2}}) },
			"row 1: Takes -7ns is negative; row 2: Times -2 is below -1, which is Forever"},
		{func(tb testing.TB) { retrytest.NewServer(tb, []retrytest.Answer{{Fault: "dog"}}) }, `row 1: Fault "dog" ` + faults},
		{func(tb testing.TB) {
			retrytest.NewPipeServer(tb, []retrytest.Answer{{RetryAfter: -1, RetryDate: -1, Takes: -1, Pause: -1}})
		}, "row 1: RetryAfter -1ns is negative; row 1: RetryDate -1ns is negative; row 1: Takes -1ns is negative; row 1: Pause -1ns is negative"},
		{func(tb testing.TB) { retrytest.Statuses(tb, 0, 101, 200, 999, -1, 99999) },
			"row 5: Status -1 is neither 101 nor from 200 to 999; row 6: Status 99999 is neither 101 nor from 200 to 999"},
		{func(tb testing.TB) { retrytest.NewConnector(tb, nil, []retrytest.SQLFault{{On: "comit"}, {Takes: -1}}) },
			`row 1: On "comit" is not one of ["connect" "reuse" "begin" "exec" "query" "commit" "rollback" "prepare" "ping" "next"]; row 2: Takes -1ns is negative`},
		{func(tb testing.TB) {
			retrytest.NewConnector(tb, nil, []retrytest.SQLFault{{On: retrytest.Commit, Query: "UPDATE"}})
		}, `row 1: Query "UPDATE" does not go with On "commit"`},
		{func(tb testing.TB) {
			retrytest.NewPipeServer(tb, []retrytest.Answer{{Drip: -1, OnHeader: "X"}, {On: "GET", Fault: retrytest.NoHost}})
		}, `row 1: Drip -1ns is negative; row 1: OnHeader "X" is not of the form "Name: value"; ` +
			`row 2: Fault "no host" comes before the request is read, and so does not go with On and OnHeader`},
		{func(tb testing.TB) { retrytest.Chaos{Rate: 2}.Func(tb, nil, nil) }, "Chaos.Rate 2 is not from 0 to 1"},
		{func(tb testing.TB) { retrytest.Chaos{Rate: math.NaN()}.Connector(tb, nil, nil) }, "Chaos.Rate NaN is not from 0 to 1"},
		{func(tb testing.TB) { retrytest.Chaos{}.Func(tb, nil, []retrytest.Step{{Times: -7, Takes: -1}}) },
			"row 1 of the mix: Takes -1ns is negative"},
		{func(tb testing.TB) { retrytest.Chaos{}.RoundTripper(tb, nil, []retrytest.Answer{{}, {Fault: "dog"}}) },
			`row 2 of the mix: Fault "dog" ` + faults},
	} {
		var r recorder
		var ended sync.WaitGroup
		ended.Go(func() { row.make(&r) })
		ended.Wait()
		require.Len(t, r.ended(), 1, row.want)
		require.Regexp(t, `^fatal: retrytest: script_test.go:\d+: `+regexp.QuoteMeta(row.want)+"$", r.messages[0])
	}
}

func TestScriptValue(t *testing.T) {
	t.Run("values, with errors too", func(t *testing.T) {
		fn := retrytest.ScriptValue[int](t, []retrytest.Step{{Value: 1, Err: errDown}, {}, {Value: 3}})
		var got []string
		for range 3 {
			got = append(got, fmt.Sprint(fn(t.Context())))
		}
		require.Equal(t, []string{"1 down", "0 <nil>", "3 <nil>"}, got)
	})
	t.Run("an interface", func(t *testing.T) {
		fn := retrytest.ScriptValue[error](t, []retrytest.Step{{Value: errDown}, {}})
		v, err := fn(t.Context())
		require.Equal(t, []error{errDown, nil}, []error{v, err})
		v, err = fn(t.Context())
		require.Equal(t, []error{nil, nil}, []error{v, err})
	})
	t.Run("a wrong type fails at once", func(t *testing.T) {
		var r recorder
		retrytest.ScriptValue[int](&r, []retrytest.Step{{}, {Value: "one"}})
		require.Equal(t, []string{"retrytest: " + here(1) + ": the Value of row 2 is a string, want int"}, r.messages)
	})
}

// Each line of a failure names a file of the test, not one of this package.
func TestCaller(t *testing.T) {
	for name, make := range map[string]func(testing.TB){
		"Script":        func(tb testing.TB) { retrytest.Script(tb, []retrytest.Step{{}}) },
		"ScriptValue":   func(tb testing.TB) { retrytest.ScriptValue[int](tb, []retrytest.Step{{}}) },
		"Errors":        func(tb testing.TB) { retrytest.Errors(tb, nil) },
		"NewServer":     func(tb testing.TB) { retrytest.NewServer(tb, []retrytest.Answer{{}}) },
		"NewPipeServer": func(tb testing.TB) { retrytest.NewPipeServer(tb, []retrytest.Answer{{}}) },
		"Statuses":      func(tb testing.TB) { retrytest.Statuses(tb, 503) },
		"NewConnector":  func(tb testing.TB) { retrytest.NewConnector(tb, nil, []retrytest.SQLFault{{}}) },
	} {
		t.Run(name, func(t *testing.T) {
			var r recorder
			make(&r)
			messages := r.ended()
			require.Len(t, messages, 1)
			require.Regexp(t, regexp.MustCompile(`^retrytest: script_test\.go:\d+: row 1 of 1, \{.*\}, is left`), messages[0])
			require.False(t, strings.Contains(messages[0], "\n"))
		})
	}
}
