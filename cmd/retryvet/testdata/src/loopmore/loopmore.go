package loopmore

import (
	"context"
	"time"
)

func call(context.Context) error { return nil }
func get(string) (int, error)    { return 0, nil }
func temporary(error) bool       { return true }

func endless(ctx context.Context) {
	for { // want `^this retry loop sleeps without watching ctx; it also never ends while the call fails, even if ctx is done \(\w+\)$`
		if err := call(ctx); err == nil {
			break
		}
		<-time.After(time.Second)
	}
}

func halves(ctx context.Context) (err error) {
	for i := range 3 { // want `^this retry loop sleeps without watching ctx \(\w+\)$`
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

func limited() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i := 0; i < 3; i++ { // want `sleeps without watching ctx; it also repeats the call even if ctx is done`
		if err = call(ctx); err == nil {
			return nil
		}
		if i < 2 {
			time.Sleep(time.Second)
		}
	}
	return err
}

func doubled(ctx context.Context, name string) (int, error) {
	delay := time.Second
	for i := 0; ; i++ { // want `^this retry loop sleeps without watching ctx \(\w+\)$`
		n, err := get(name)
		if err == nil || i == 5 {
			return n, err
		}
		time.Sleep(delay)
		delay *= 2
	}
}

func twoWaits(ctx context.Context, delay time.Duration) error {
	for i := 0; ; i++ {
		err := call(ctx)
		if err == nil || i == 5 {
			return err
		}
		if done := ctx.Done(); done != nil {
			select {
			case <-done:
				return err
			case <-time.After(delay):
				continue
			}
		}
		time.Sleep(delay)
	}
}
