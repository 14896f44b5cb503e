package retrytest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retrysql"
	"github.com/retrygo/retry/retrytest"
)

// An example has no test of its own. In a test, t is its argument.
var t = new(testing.T)

func ExampleScript() {
	errDown := errors.New("the mail server is down")
	synctest.Test(t, func(t *testing.T) {
		send := retrytest.Script(t, []retrytest.Step{
			{Err: errDown},
			{Takes: 2 * time.Second, Err: errDown},
			{Hang: true},
			{},
		})
		var runs retrytest.Timeline
		p := retry.Policy{AttemptTimeout: 10 * time.Second, Backoff: retry.Backoff{Base: time.Minute}, Observe: runs.Observe}
		if err := retry.Do(t.Context(), p, send); err != nil {
			t.Error(err)
		}
		fmt.Print(&runs)
	})
	// Output:
	// 0s      attempt 1  the mail server is down                      wait 1m
	// 1m2s    attempt 2  the mail server is down                      took 2s, wait 2m
	// 3m12s   attempt 3  attempt timeout: context deadline exceeded   took 10s, wait 4m
	// 7m12s   attempt 4  ok
	// 7m12s   succeeded after 4 attempts
}

func ExampleErrors() {
	errBusy := errors.New("busy")
	p := retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Delays: []time.Duration{0}}}
	err := retry.Do(context.Background(), p, retrytest.Errors(t, errBusy, errBusy, nil))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleScriptValue() {
	read := retrytest.ScriptValue[string](t, []retrytest.Step{{Err: io.ErrUnexpectedEOF}, {Value: "hello"}})
	p := retry.Policy{Backoff: retry.Backoff{Delays: []time.Duration{0}}}
	fmt.Println(retry.DoValue(context.Background(), p, read))
	// Output: hello <nil>
}

func ExampleNewPipeServer() {
	synctest.Test(t, func(t *testing.T) {
		server := retrytest.NewPipeServer(t, []retrytest.Answer{
			{Status: 503},
			{Fault: retrytest.ResetRead},
			{Status: 429, RetryAfter: 30 * time.Second},
			{Body: "hello"},
		})
		var runs retrytest.Timeline
		client := &http.Client{Transport: &retryhttp.Transport{
			Base:          server,
			AttemptHeader: retryhttp.AttemptHeader,
			Repeat:        func(*retryhttp.AttemptError) bool { return true },
			Policy: retry.Policy{
				Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Second},
				Observe: runs.Observe,
			},
		}}
		resp, err := client.Post("http://api.example.com/orders", "text/plain", strings.NewReader("one"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		fmt.Print(&runs)
		for _, r := range server.Requests() {
			fmt.Println(r.At, r.Conn, r.Method, r.URL, r.Body, r.Header.Get(retryhttp.AttemptHeader))
		}
	})
	// Output:
	// 0s    attempt 1  503 Service Unavailable   wait 1s
	// 1s    attempt 2  connection reset          wait 1s
	// 2s    attempt 3  429 Too Many Requests     wait 30s
	// 32s   attempt 4  ok
	// 32s   succeeded after 4 attempts
	// 0s 1 POST /orders one 1
	// 1s 2 POST /orders one 2
	// 2s 3 POST /orders one 3
	// 32s 3 POST /orders one 4
}

func ExampleNewServer() {
	server := retrytest.NewServer(t, []retrytest.Answer{
		{Fault: retrytest.Truncate, Body: "a long answer"},
		{Body: "a long answer"},
	})
	for range 2 {
		resp, err := http.Get(server.URL)
		if err != nil {
			fmt.Println(err)
			return
		}
		body, err := io.ReadAll(resp.Body)
		fmt.Printf("%s %q %v\n", resp.Status, body, err)
		_ = resp.Body.Close()
	}
	// Output:
	// 200 OK "a long" unexpected EOF
	// 200 OK "a long answer" <nil>
}

func ExampleNewConnector() {
	synctest.Test(t, func(t *testing.T) {
		c := retrytest.NewConnector(t, nil, []retrytest.SQLFault{
			{On: retrytest.Commit, Err: retrytest.ErrSerialization},
			{On: retrytest.Commit, Lost: true, Late: true},
		})
		err := retrysql.Tx(t.Context(), c.OpenDB(), retry.Policy{}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			_, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance - 1")
			return err
		})
		fmt.Println("ambiguous:", errors.Is(err, retrysql.ErrCommitAmbiguous))
		fmt.Println("committed:", c.Committed())
	})
	// Output:
	// ambiguous: true
	// committed: [UPDATE accounts SET balance = balance - 1]
}

func ExampleConnector_Calls() {
	synctest.Test(t, func(t *testing.T) {
		c := retrytest.NewConnector(t, nil, []retrytest.SQLFault{{Query: "UPDATE", Err: retrytest.ErrDeadlock}})
		err := retrysql.Tx(t.Context(), c.OpenDB(), retry.Policy{}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			_, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance - 1")
			return err
		})
		if err != nil {
			t.Error(err)
		}
		for _, call := range c.Calls() {
			fmt.Println(call.Conn, call.Op, call.Done, call.Err)
		}
	})
	// Output:
	// 1 connect true <nil>
	// 1 begin true <nil>
	// 1 exec false deadlock detected (SQLSTATE 40P01)
	// 1 rollback true <nil>
	// 1 begin true <nil>
	// 1 exec true <nil>
	// 1 commit true <nil>
}

// A driver without its own connectors, such as modernc.org/sqlite, over a database in memory.
func ExampleDSN() {
	sqlite, err := sql.Open("sqlite", "")
	if err != nil {
		t.Fatal(err)
	}
	base := retrytest.DSN(sqlite.Driver(), "file:orders?mode=memory&cache=shared")
	db := retrytest.NewConnector(t, base, []retrytest.SQLFault{{On: retrytest.Commit, Err: retrytest.ErrBusy}}).OpenDB()
	_ = db // with the fault
}

func ExampleTimeline() {
	synctest.Test(t, func(t *testing.T) {
		server := retrytest.NewPipeServer(t, []retrytest.Answer{{Status: 503}, {Fault: retrytest.ResetUnread}, {}})
		var runs retrytest.Timeline
		client := retryhttp.NewClient(retry.Policy{
			Backoff: retry.Backoff{Delays: []time.Duration{50 * time.Millisecond, 87 * time.Millisecond}},
			Observe: runs.Observe,
		})
		client.Transport.(*retryhttp.Transport).Base = server
		resp, err := client.Get("http://api.example.com/")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		fmt.Print(&runs)
	})
	// Output:
	// 0s      attempt 1  503 Service Unavailable   wait 50ms
	// 50ms    attempt 2  connection reset          wait 87ms
	// 137ms   attempt 3  ok
	// 137ms   succeeded after 3 attempts
}

func ExampleCheckSchedule() {
	p := retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: time.Second, Cap: 3 * time.Second, Jitter: retry.FullJitter}}
	retrytest.CheckSchedule(t, p, 1*time.Second, 2*time.Second, 3*time.Second)
	fmt.Println(t.Failed())
	// Output: false
}

func ExampleChaos() {
	chaos := retrytest.Chaos{Seed: 7, Rate: 0.3}
	calls := 0
	work := chaos.Func(t, func(context.Context) error { calls++; return nil }, nil)
	p := retry.Policy{MaxAttempts: retry.Unlimited, Backoff: retry.Backoff{Delays: []time.Duration{0}}}
	attempts := 0
	for range 1000 {
		_ = retry.Do(context.Background(), p, func(ctx context.Context) error { attempts++; return work(ctx) })
	}
	fmt.Println(calls, attempts)
	// Output: 1000 1448
}
