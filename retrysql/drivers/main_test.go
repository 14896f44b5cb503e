package drivers_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

func TestMain(m *testing.M) {
	if err := mysql.SetLogger(&mysql.NopLogger{}); err != nil { // it logs each connection that is cut
		panic(err)
	}
	before := runtime.NumGoroutine()
	code := m.Run()
	runAtExit()
	if left := goroutinesAbove(before); left != "" && code == 0 {
		fmt.Println("goroutines are left behind:\n" + left)
		code = 1
	}
	os.Exit(code)
}

var exits struct {
	mu    sync.Mutex
	funcs []func()
}

// atExit registers f to be called after all tests, in reverse order.
func atExit(f func()) {
	exits.mu.Lock()
	defer exits.mu.Unlock()
	exits.funcs = append(exits.funcs, f)
}

func runAtExit() {
	exits.mu.Lock()
	defer exits.mu.Unlock()
	for _, f := range slices.Backward(exits.funcs) {
		f()
	}
}

// settleTime is far more than an idle goroutine needs to end.
const settleTime = 10 * time.Second

// goroutinesAbove waits until at most the given number of goroutines are left. It returns all stacks if more remain.
func goroutinesAbove(number int) string {
	for deadline := time.Now().Add(settleTime); runtime.NumGoroutine() > number; runtime.Gosched() {
		if time.Now().After(deadline) {
			var stacks bytes.Buffer
			_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
			return stacks.String()
		}
	}
	return ""
}
