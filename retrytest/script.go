package retrytest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrygo/retry"
)

// Forever is the Times of a last row that is used for all following calls, if any.
const Forever = -1

// Step is what one attempt of a Script does. The zero Step succeeds at once.
type Step struct {
	// Err is the error that the attempt returns. Nil means success.
	Err error
	// Value is the value that the attempt of a ScriptValue returns. Nil means the zero value.
	Value any
	// Takes is how long the attempt takes. If its context ends earlier, it returns the context's error. Zero means no
	// time.
	Takes time.Duration
	// Hang makes the attempt last until its context ends. It then returns Err, or the context's error if Err is nil.
	// False means that it lasts for Takes.
	Hang bool
	// Deaf makes the attempt ignore its context during Takes, but not during Hang. False means that the context can cut
	// Takes short.
	Deaf bool
	// Panic is the value with which the attempt panics, after Takes. Nil means no panic.
	Panic any
	// Times is the number of attempts that use the row. Zero means 1. Forever means all that follow.
	Times int
}

// Script returns a function for retry.Do whose attempts execute the steps, in turn. An attempt beyond the last step
// fails the test and returns a permanent error, so the run ends.
func Script(tb testing.TB, steps []Step) func(context.Context) error {
	s := newScript(tb, steps)
	return func(ctx context.Context) error {
		_, err := perform(ctx, s)
		return err
	}
}

// ScriptValue is Script for retry.DoValue. A Value that is not a T fails the test at once.
func ScriptValue[T any](tb testing.TB, steps []Step) func(context.Context) (T, error) {
	s := newScript(tb, steps)
	for i, step := range steps {
		if _, ok := step.Value.(T); !ok && step.Value != nil {
			s.errorf("the Value of row %d is a %T, want %v", i+1, step.Value, reflect.TypeFor[T]())
		}
	}
	return func(ctx context.Context) (T, error) {
		value, err := perform(ctx, s)
		v, _ := value.(T)
		return v, err
	}
}

// Errors is Script for attempts that return these errors at once. A nil error is a success.
func Errors(tb testing.TB, errs ...error) func(context.Context) error {
	steps := make([]Step, len(errs))
	for i, err := range errs {
		steps[i].Err = err
	}
	return Script(tb, steps)
}

// perform makes one attempt.
func perform(ctx context.Context, s *script[Step]) (any, error) {
	step, err := s.next()
	if err != nil {
		return nil, err
	}
	value, err := step.perform(ctx)
	if err == errEndless {
		s.errorf("an attempt hangs, and its context never ends")
	}
	return value, err
}

// errEndless is returned instead of a hang that would never end.
var errEndless = retry.Permanent(errors.New("retrytest: the attempt hangs, and its context never ends"))

func (s *Step) perform(ctx context.Context) (any, error) {
	switch {
	case s.Hang && ctx.Done() == nil:
		return nil, errEndless
	case s.Hang:
		<-ctx.Done()
		if s.Err == nil {
			return s.Value, ctx.Err()
		}
		return s.Value, s.Err
	case s.Deaf:
		time.Sleep(s.Takes)
	default:
		if err := sleep(ctx, s.Takes); err != nil {
			return nil, err
		}
	}
	if s.Panic != nil {
		panic(s.Panic)
	}
	return s.Value, s.Err
}

func (s Step) times() int { return s.Times }

func (s Step) check(bad refuse) { bad.negative("Takes", s.Takes) }

// sleep returns nil after d, or the context's error if the context ends earlier. If both happen at the same instant it
// returns nil, so the result does not depend on the order of the timers.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	began := time.Now()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		if time.Since(began) < d {
			return ctx.Err()
		}
	}
	return nil
}

// row is one row of a script.
type row interface {
	times() int
	check(refuse) // all but Times
}

// refuse notes that a field of a row breaks a rule.
type refuse func(field string, value any, rule string)

func (r refuse) negative(field string, d time.Duration) {
	if d < 0 {
		r(field, d, "is negative")
	}
}

// checkRows ends the test if a row has a bad field. of is "" or " of the mix". times means that Times counts.
func checkRows[R row](tb testing.TB, rows []R, of string, times bool) {
	var bad retry.FieldErrors
	where := "retrytest: " + caller()
	for i, r := range rows {
		refuse := func(field string, value any, rule string) {
			bad.Refuse(fmt.Sprintf("row %d%s: %s", i+1, of, field), value, rule)
			bad[len(bad)-1].(*retry.FieldError).Package = where
		}
		if times && r.times() < Forever {
			refuse("Times", r.times(), "is below -1, which is Forever")
		}
		r.check(refuse)
	}
	if bad != nil {
		tb.Fatalf("%v", bad)
	}
}

// script returns the rows of a test in turn, each as often as it says.
type script[R row] struct {
	tb    testing.TB
	where string // file and line in the test
	rows  []R

	mu   sync.Mutex
	at   int // the next row
	used int // how often it was used
	all  int // how many rows were returned
}

// newScript returns a script that must be used up by the test's end.
func newScript[R row](tb testing.TB, rows []R) *script[R] {
	checkRows(tb, rows, "", true)
	s := &script[R]{tb: tb, where: caller(), rows: slices.Clone(rows)}
	tb.Cleanup(func() {
		if s.mu.Lock(); s.at < len(s.rows) && (s.rows[s.at].times() >= 0 || s.at+1 < len(s.rows)) && !tb.Failed() {
			s.errorf("row %d of %d is left at the test's end, after %d calls", s.at+1, len(s.rows), s.all)
		}
		s.mu.Unlock()
	})
	return s
}

// caller returns the file and line that called this package.
func caller() string {
	ours := reflect.TypeFor[Step]().PkgPath() + "."
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		frame, more := frames.Next()
		if !more || !strings.HasPrefix(frame.Function, ours) {
			return fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
		}
	}
}

// errorf fails the test, naming the line of the script.
func (s *script[R]) errorf(format string, args ...any) {
	s.tb.Errorf("retrytest: %s: %s", s.where, fmt.Sprintf(format, args...))
}

// take returns the next row and counts its use, if match returns true for it.
func (s *script[R]) take(match func(R) bool) (R, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == len(s.rows) || !match(s.rows[s.at]) {
		var none R
		return none, false
	}
	row := s.rows[s.at]
	s.all++
	s.used++
	if times := row.times(); times >= 0 && s.used >= max(times, 1) {
		s.at, s.used = s.at+1, 0
	}
	return row, true
}

// next returns the next row and counts its use. If there is none, it fails the test and returns a permanent error.
func (s *script[R]) next() (R, error) {
	row, ok := s.take(func(R) bool { return true })
	if ok {
		return row, nil
	}
	planned := 0
	for _, r := range s.rows {
		planned += max(r.times(), 1)
	}
	s.mu.Lock()
	s.all++
	calls := s.all
	s.mu.Unlock()
	s.errorf("call %d, and the script has rows for %d", calls, planned)
	return row, retry.Permanent(fmt.Errorf("retrytest: %s: the script has ended", s.where))
}

// due reports whether match returns true for the next row.
func (s *script[R]) due(match func(R) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at < len(s.rows) && match(s.rows[s.at])
}
