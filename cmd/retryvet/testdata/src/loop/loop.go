package loop

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func call(context.Context) error { return nil }
func get(string) (int, error)    { return 0, nil }
func temporary(error) bool       { return true }
func handle(int)                 {}
func ready(string) bool          { return false }
func count() int                 { return 0 }
func backoff(int) time.Duration  { return 0 }

func check(context.Context) (bool, error)     { return false, nil }
func retryAfter(error) (time.Duration, error) { return 0, nil }

func blind(ctx context.Context) error {
	var err error
	for i := 0; i < 3; i++ { // want `^this retry loop sleeps without watching ctx; it also repeats the call even if ctx is done and sleeps after the last attempt \(loop, see .*by-hand.md\)$`
		if err = call(ctx); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

func afterDone(ctx context.Context) {
	for { // want `sleeps without watching ctx; it also repeats the call even if ctx is done \(loop, see .*by-hand.md\)$`
		if err := call(ctx); err == nil {
			break
		}
		<-time.After(time.Second)
	}
}

func loses(name string) (int, error) {
	for i := range 5 { // want `this retry loop loses the last error`
		n, err := get(name)
		if err == nil {
			return n, nil
		}
		if i < 4 {
			time.Sleep(time.Second)
		}
	}
	return 0, errors.New("gave up")
}

func last(name string) (n int, err error) {
	for range 5 { // want `this retry loop sleeps after the last attempt`
		n, err = get(name)
		if err == nil {
			return n, nil
		}
		if !temporary(err) {
			return 0, fmt.Errorf("get: %w", err)
		}
		time.Sleep(time.Second)
	}
	return 0, err
}

func looksAtTheTop(name string) (int, error) {
	n, err := get(name)
	for range 3 { // want `this retry loop sleeps after the last attempt`
		if err == nil {
			break
		}
		n, err = get(name)
		time.Sleep(time.Second)
	}
	return n, err
}

func waitsFirst(ctx context.Context, name string) error {
	_, err := get(name)
	for { // want `^this retry loop sleeps without watching ctx \(loop, see .*by-hand.md\)$`
		if err == nil {
			return nil
		}
		time.Sleep(time.Second)
		_, err = get(name)
	}
}

func watchesAnother(ctx context.Context, stop chan struct{}) error {
	for i := 0; ; i++ { // want `^this retry loop repeats the call even if ctx is done \(loop, see .*by-hand.md\)$`
		err := call(ctx)
		if err == nil || i == 3 {
			return err
		}
		select {
		case <-stop:
			return err
		case <-time.After(time.Second):
		}
	}
}

func status(ctx context.Context) (*http.Response, error) {
	for { // want `^this retry loop sleeps without watching ctx \(loop, see .*by-hand.md\)$`
		resp, err := http.Get("http://x")
		if err == nil && resp.StatusCode < 300 {
			return resp, nil
		}
		if err == nil {
			resp.Body.Close()
		}
		time.Sleep(time.Second)
	}
}

func ignored(name string) int {
	//retryvet:ignore loop the device answers at last
	for {
		n, err := get(name)
		if err == nil {
			return n
		}
		time.Sleep(time.Second)
	}
}

func bySwitch(name string) (n int, err error) {
	for i := range 5 { // want `this retry loop sleeps after the last attempt`
		n, err = get(name)
		switch {
		case err == nil:
			return n, nil
		case !temporary(err):
			return 0, fmt.Errorf("attempt %d: %w", i, err)
		}
		time.Sleep(time.Second)
	}
	return 0, err
}

func countsUp(name string) (int, error) {
	attempts := 0
	for attempts < 5 { // want `^this retry loop sleeps after the last attempt \(loop, see .*by-hand.md\)$`
		attempts++
		n, err := get(name)
		if err == nil {
			return n, nil
		}
		log.Print(err)
		time.Sleep(time.Second)
	}
	return 0, os.ErrDeadlineExceeded
}

func asksForTheDelay(name string) (n int, err error) {
	for range 5 { // want `^this retry loop sleeps after the last attempt \(loop, see .*by-hand.md\)$`
		if n, err = get(name); err == nil {
			return n, nil
		}
		delay, errDelay := retryAfter(err)
		if errDelay != nil {
			return 0, errDelay
		}
		time.Sleep(delay)
	}
	return 0, err
}

func drainsTheTimer(ctx context.Context, name string) (int, error) {
	for range 5 { // want `^this retry loop sleeps after the last attempt; it also loses the last error \(loop, see .*by-hand.md\)$`
		n, err := get(name)
		if err == nil {
			return n, nil
		}
		t := time.NewTimer(time.Second)
		select {
		case <-t.C:
		case <-ctx.Done():
			if !t.Stop() {
				<-t.C
			}
			return 0, err
		}
	}
	return 0, errors.New("gave up")
}

func atLeast(ctx context.Context, s *server, action func(*server) error) (err error) {
	for i := range 5 { // want `^this retry loop sleeps without watching ctx \(loop, see .*by-hand.md\)$`
		if i > 0 {
			time.Sleep(time.Second + time.Duration(rand.Intn(5e9)))
		}
		if err = action(s); !temporary(err) {
			s.name = "done"
			return err
		}
		s.ctx = nil
	}
	return err
}

func (s *server) dials() int {
	for { // want `^this retry loop sleeps without watching s.ctx \(loop, see .*by-hand.md\)$`
		select {
		case <-s.ctx.Done():
			return 0
		default:
		}
		n, err := get(s.name)
		if err == nil {
			return n
		}
		time.Sleep(30 * time.Second)
	}
}

// What follows is right, or is no retry.

func asksBeforeIt(ctx context.Context) {
	for {
		ctx1, cancel := context.WithTimeout(ctx, time.Minute)
		err := call(ctx1)
		cancel()
		if err == nil {
			return
		}
		if temporary(err) {
			if ctx.Err() != nil {
				return
			}
			time.Sleep(time.Second)
			continue
		}
		return
	}
}

func bySwitchOfTheCounter(name string) (n int, err error) {
	for i := range 5 {
		n, err = get(name)
		switch {
		case err == nil:
			return n, nil
		case i == 4:
			return 0, err
		}
		time.Sleep(time.Second)
	}
	return 0, err
}

func watches(ctx context.Context) error {
	for i := 0; ; i++ {
		err := call(ctx)
		if err == nil || i == 3 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func asks(ctx context.Context, stop chan struct{}) error {
	for i := 0; ; i++ {
		err := call(ctx)
		if err == nil || i == 3 || errors.Is(err, context.Canceled) {
			return err
		}
		select {
		case <-stop:
			return err
		case <-time.After(time.Second):
		}
	}
}

func short(ctx context.Context, name string) (n int, err error) {
	for range 3 {
		if n, err = get(name); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for range 3 {
		if err = call(ctx); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return n, err
}

func untilItAnswers(name string) int {
	delay := time.Second
	for {
		n, err := get(name)
		if err != nil {
			log.Print(err)
			time.Sleep(delay)
			delay *= 2
			continue
		}
		return n
	}
}

func works(name string) error {
	_, err := get(name)
	for {
		if err != nil {
			time.Sleep(time.Second)
		}
		_, err = get(name)
		if errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
}

func untilGone(ctx context.Context) error {
	for {
		resp, err := http.Get("http://x")
		if err == nil && resp.StatusCode == 404 {
			return resp.Body.Close()
		}
		time.Sleep(time.Second)
	}
}

func main() {
	for {
		if _, err := get("socket"); err == nil {
			break
		}
		time.Sleep(time.Second)
	}
}

func ticker(ctx context.Context) {
	for {
		if err := call(ctx); err != nil {
			log.Print(err)
		}
		time.Sleep(time.Minute)
	}
}

func worker(name string) error {
	for {
		n, err := get(name)
		if err != nil {
			return err
		}
		if n == 0 {
			time.Sleep(time.Second)
			continue
		}
		handle(n)
	}
}

func reconnects(ctx context.Context) {
	for {
		err := call(ctx)
		if err == nil {
			handle(1)
			continue
		}
		time.Sleep(time.Second)
	}
}

func failover(ctx context.Context, hosts []string) (err error) {
	for _, host := range hosts {
		if _, err = get(host); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

func nextName(ctx context.Context) (*os.File, error) {
	for i := 0; i < 10; i++ {
		f, err := os.Create(fmt.Sprint("x", i))
		if err == nil {
			return f, nil
		}
		time.Sleep(time.Millisecond)
	}
	return nil, os.ErrExist
}

func helper(ctx context.Context, work func() error) error {
	for { // want `this retry loop sleeps without watching ctx`
		err := work()
		if err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
}

func bounded(name string) (int, error) {
	deadline := time.Now().Add(time.Minute)
	for {
		n, err := get(name)
		if err == nil || time.Now().After(deadline) {
			return n, err
		}
		time.Sleep(time.Second)
	}
}

func oneMore(name string) (int, error) {
	for range 3 {
		if n, err := get(name); err == nil {
			return n, nil
		}
		time.Sleep(time.Second)
	}
	return get(name)
}

func background() (err error) {
	ctx := context.Background()
	for i := 0; i < 3; i++ {
		if err = call(ctx); err == nil {
			return nil
		}
		if i < 2 {
			time.Sleep(time.Second)
		}
	}
	return err
}

func derived() (err error) {
	ctx := context.Background()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err = call(ctx); err != nil {
		cancel()
		return err
	}
	for i := 0; i < 3; i++ {
		if err = call(ctx); err == nil {
			return nil
		}
		if i < 2 {
			time.Sleep(time.Second)
		}
	}
	context.AfterFunc(context.Background(), cancel)
	return err
}

func canceledElsewhere(f func(func())) (err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	f(cancel)
	for i := 0; i < 3; i++ {
		if err = call(ctx); err == nil {
			return nil
		}
		if i < 2 {
			time.Sleep(time.Second)
		}
	}
	return err
}

func canceledBySignal() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for i := 0; i < 3; i++ { // want `this retry loop repeats the call even if ctx is done`
		if err = call(ctx); err == nil {
			return nil
		}
		if i < 2 {
			time.Sleep(time.Second)
		}
	}
	return err
}

func limited(parent context.Context) (err error) {
	ctx, cancel := context.WithTimeout(parent, time.Minute)
	defer cancel()
	ctx = context.WithValue(ctx, server{}, 1)
	for range 3 { // want `this retry loop repeats the call even if ctx is done; it also sleeps after the last attempt`
		if err = call(ctx); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

func detached(ctx context.Context) (err error) {
	ctx = context.Background()
	inner := context.WithoutCancel(ctx)
	for i := 0; i < 3; i++ {
		if err = call(inner); err == nil {
			return nil
		}
		if i < 2 {
			time.Sleep(time.Second)
		}
	}
	return err
}

func brief(ctx context.Context) (err error) {
	for i := range 3 {
		if i > 0 {
			time.Sleep(time.Duration(100*i) * time.Millisecond)
		}
		if err = call(ctx); err == nil {
			return nil
		}
		if !temporary(err) {
			break
		}
	}
	return err
}

func longer(ctx context.Context) (err error) {
	for i := range 3 {
		if i > 0 {
			time.Sleep(time.Duration(500*i) * time.Millisecond)
		}
		if err = call(ctx); err == nil {
			return nil
		}
		if !temporary(err) {
			break
		}
	}
	return err
}

func random(data []byte) (err error) {
	for range 5 {
		if err = os.WriteFile("x", data, 0o600); err == nil {
			return nil
		}
		time.Sleep(time.Duration(rand.Intn(100)) * time.Millisecond)
	}
	return err
}

func tenth(name string) (err error) {
	for range 5 {
		if _, err = get(name); err == nil {
			return nil
		}
		<-time.After(100 * time.Millisecond)
	}
	return err
}

func number(name string) error {
	for i := range 50 {
		err := os.Remove(name)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) {
			return err
		}
		if i < 49 {
			time.Sleep(time.Second)
		}
	}
	return fmt.Errorf("remove %s: %w", name, syscall.EBUSY)
}

func asksEachTurn(ctx context.Context) {
	for ctx.Err() == nil {
		if err := call(ctx); err == nil {
			return
		}
		time.Sleep(time.Second)
	}
}

func inGoroutine(failed chan error) {
	go func() {
		var err error
		for range 5 {
			if err = call(context.TODO()); err == nil {
				return
			}
			time.Sleep(time.Second)
		}
		log.Print(err)
	}()
	go func() {
		var err error
		for range 5 {
			if err = call(context.TODO()); err == nil {
				return
			}
			time.Sleep(time.Second)
		}
		failed <- err
	}()
}

func asksInside(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := call(ctx); err == nil {
			return nil
		}
		time.Sleep(time.Second / 2)
	}
}

func asksBySelect(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		if err := call(ctx); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
}

func asksTooLate(ctx context.Context) error {
	for { // want `this retry loop sleeps without watching ctx`
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := call(ctx); err == nil {
			return nil
		}
		time.Sleep(time.Minute)
	}
}

func asksSlowly(ctx context.Context) {
	for ctx.Err() == nil { // want `this retry loop sleeps without watching ctx`
		if err := call(ctx); err == nil {
			return
		}
		time.Sleep(2 * time.Second)
	}
}

type server struct {
	ctx  context.Context
	name string
}

func (s *server) start() int {
	for { // want `this retry loop sleeps without watching s.ctx`
		n, err := get(s.name)
		if err == nil {
			return n
		}
		time.Sleep(time.Second)
	}
}

func (s server) startSoon() int {
	for {
		n, err := get(s.name)
		if err == nil {
			return n
		}
		time.Sleep(time.Second / 2)
	}
}
