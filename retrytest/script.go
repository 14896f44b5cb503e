package retrytest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrygo/retry"
)

// Forever is the Times of a last row that is used for all following calls, if any.
const Forever = -1

// Step is the behavior of one attempt of a Script. The zero Step succeeds at once.
type Step struct {
	// Err is the error that the attempt returns. Nil means success. With retryjob.ErrLost the attempt of a job is one whose
	// worker died.
	Err error
	// Value is the value that the attempt of a ScriptValue returns. Nil means the zero value.
	Value any
	// Takes is how long the attempt takes. If its context ends earlier, it returns the context's error. Zero means no
	// time.
	Takes time.Duration
	// Hang makes the attempt last until its context ends. It then returns Err, or the context's error if Err is nil.
	// False means that it lasts for Takes.
	Hang bool
	// IgnoreContext makes the attempt ignore its context during Takes, but not during Hang. False means that the context can cut
	// Takes short.
	IgnoreContext bool
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

func perform(ctx context.Context, s *script[Step]) (any, error) {
	step, use, err := s.next("")
	if err != nil {
		return nil, err
	}
	value, err := step.perform(ctx)
	if err == errEndless {
		s.errorf("%s hangs, and its context never ends: the policy needs an AttemptTimeout, or the caller a deadline", use)
	}
	return value, err
}

// errEndless is returned instead of a hang that would never end.
var errEndless = retry.Permanent(errors.New("retrytest: the attempt hangs, and its context never ends"))

// endless is how long a hang lasts if its context does not end it. In a bubble whose other goroutines all wait, that is
// at once, and a failure of the test instead of a deadlock of all goroutines. Elsewhere no test lasts that long.
const endless = 10 * 365 * 24 * time.Hour

// hang waits until ctx ends. It reports false if ctx does not end it.
func hang(ctx context.Context) bool {
	timer := time.NewTimer(endless)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return true
	case <-timer.C:
		return false
	}
}

func (s *Step) perform(ctx context.Context) (any, error) {
	switch {
	case s.Hang && ctx.Done() == nil:
		return nil, errEndless
	case s.Hang:
		if !hang(ctx) {
			return nil, errEndless
		}
		if s.Err == nil {
			return s.Value, ctx.Err()
		}
		return s.Value, s.Err
	case s.IgnoreContext:
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

// script returns the rows of a test in turn, each as often as its Times.
type script[R row] struct {
	tb    testing.TB
	where string // file and line in the test
	rows  []R

	mu   sync.Mutex
	used []int    // how often each row was used
	all  int      // how many calls were made
	last []string // the newest of them
}

// shownCalls is how many calls a message lists.
const shownCalls = 5

// newScript returns a script that must be used up by the test's end.
func newScript[R row](tb testing.TB, rows []R) *script[R] {
	checkRows(tb, rows, "", true)
	s := &script[R]{tb: tb, where: caller(), rows: slices.Clone(rows), used: make([]int, len(rows))}
	tb.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if left := s.left(); left >= 0 && !tb.Failed() {
			s.errorf("row %d of %d, %s, is left at the test's end; %s", left+1, len(s.rows), described(s.rows[left]), s.calls())
		}
	})
	return s
}

// left returns the first row that is not used up, or -1. A last row with Forever need not be used.
func (s *script[R]) left() int {
	for i, r := range s.rows {
		if s.usable(i) && (r.times() >= 0 || i+1 < len(s.rows)) {
			return i
		}
	}
	return -1
}

func (s *script[R]) usable(i int) bool {
	times := s.rows[i].times()
	return times < 0 || s.used[i] < max(times, 1)
}

func (s *script[R]) calls() string {
	switch {
	case s.all == 0:
		return "no call was made"
	case s.all == 1:
		return "1 call was made: " + s.last[0]
	case s.all <= shownCalls:
		return fmt.Sprintf("%d calls were made: %s", s.all, strings.Join(s.last, ", "))
	default:
		return fmt.Sprintf("%d calls were made, the last: %s", s.all, strings.Join(s.last, ", "))
	}
}

func (s *script[R]) note(call string) {
	s.all++
	if s.last = append(s.last, call); len(s.last) > shownCalls {
		s.last = s.last[1:]
	}
}

// described returns the fields of a row that are set, such as "{Err: down, Takes: 2s}".
func described(row any) string {
	v := reflect.ValueOf(row)
	var fields []string
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsZero() && f.Kind() != reflect.Func {
			text := fmt.Sprint(f.Interface())
			if f.Kind() == reflect.String {
				text = strconv.Quote(text)
			}
			fields = append(fields, fmt.Sprintf("%s: %.60s", v.Type().Field(i).Name, text))
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
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

func (s *script[R]) errorf(format string, args ...any) {
	s.tb.Errorf("retrytest: %s: %s", s.where, fmt.Sprintf(format, args...))
}

// fit is whether a row is for a call.
type fit uint8

const (
	never fit = iota // no row is, until this one is used up
	pass             // a later row may be
	takes            // this row is
)

// always is for rows that are used in turn, whatever the call.
func always[R row](R) fit { return takes }

// take counts the use of the row that is for a call, and returns the row and a text with its number. call describes the
// call. It can be empty.
func (s *script[R]) take(call string, fits func(R) fit) (row R, use string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range s.rows {
		if !s.usable(i) {
			continue
		}
		switch fits(r) {
		case never:
			return row, "", false
		case takes:
			s.used[i]++
			use = fmt.Sprintf("row %d", i+1)
			if call != "" {
				use = call + " (" + use + ")"
			}
			s.note(use)
			return r, fmt.Sprintf("call %d, %s,", s.all, use), true
		}
	}
	return row, "", false
}

// next is take for a call that must have a row. If the script has no row for it, next fails the test and returns a
// permanent error.
func (s *script[R]) next(call string) (R, string, error) { return s.nextThat(call, always[R]) }

func (s *script[R]) nextThat(call string, fits func(R) fit) (R, string, error) {
	row, use, ok := s.take(call, fits)
	if ok {
		return row, use, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.calls()
	s.note(cmp.Or(call, "a call without a row"))
	if call != "" {
		call = ", " + call + ","
	}
	if left := s.left(); left >= 0 {
		s.errorf("call %d%s has no row: row %d of %d, %s, is for another", s.all, call, left+1, len(s.rows), described(s.rows[left]))
	} else {
		s.errorf("call %d%s is beyond the last of %d rows; %s", s.all, call, len(s.rows), before)
	}
	return row, "", retry.Permanent(fmt.Errorf("retrytest: %s: the script has ended", s.where))
}

// due reports whether match returns true for the first row that is not used up.
func (s *script[R]) due(match func(R) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range s.rows {
		if s.usable(i) {
			return match(r)
		}
	}
	return false
}
