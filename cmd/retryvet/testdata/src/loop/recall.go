package loop

import (
	"context"
	"errors"
	"log"
	"net/http"
	"time"
)

// What published modules have, in other words.

func variable(ctx context.Context, name string) (int, error) {
	delay := 2 * time.Second
	for i := 0; ; i++ { // want `^this retry loop sleeps without watching ctx \(loop, see .*by-hand.md\)$`
		n, err := get(name)
		if err == nil || i == 5 {
			return n, err
		}
		time.Sleep(delay)
		delay *= 2
	}
}

func shortVariable(ctx context.Context, name string, fast bool) (int, error) {
	delay := backoff(1)
	if !fast {
		delay = time.Minute
	}
	if fast {
		delay = time.Millisecond
	}
	for i := 0; ; i++ {
		n, err := get(name)
		if err == nil || i == 5 {
			return n, err
		}
		time.Sleep(delay)
	}
}

func ofRequest(w http.ResponseWriter, req *http.Request) {
	for i := 0; i < 3; i++ { // want `sleeps without watching req.Context\(\)`
		if _, err := get("x"); err == nil {
			return
		}
		if i < 2 {
			time.Sleep(time.Second)
		}
	}
}

func ofParameter(b *server) int {
	for { // want `sleeps without watching b.ctx`
		if n, err := get("x"); err == nil {
			return n
		}
		time.Sleep(time.Second)
	}
}

func watchesRequest(req *http.Request) {
	ctx := req.Context()
	for ctx.Err() == nil {
		if _, err := get("x"); err == nil {
			return
		}
		time.Sleep(time.Second)
	}
}

func watchesAlias(b *server) int {
	ctx := b.ctx
	for {
		if n, err := get("x"); err == nil || ctx.Err() != nil {
			return n
		}
		time.Sleep(time.Second)
	}
}

func goesOn(name string) (err error) {
	for attempt := 0; attempt < 3; attempt++ { // want `this retry loop repeats the call after a success`
		_, err = get(name)
		if err != nil {
			log.Print(err)
			time.Sleep(time.Second)
		}
	}
	return err
}

func three(names []string) (err error) {
	for i := 0; i < len(names); i++ {
		_, err = get(names[i])
		if err != nil {
			time.Sleep(time.Second)
		}
	}
	return err
}

func broken(name string) error {
	for i := 0; ; i++ { // want `this retry loop loses the last error`
		_, err := get(name)
		if err == nil || i == 3 {
			break
		}
		time.Sleep(time.Second)
	}
	return nil
}

func brokenAndKept(name string) (err error) {
	var last error
	for i := 0; ; i++ {
		_, err := get(name)
		if err == nil || i == 3 {
			last = err
			break
		}
		time.Sleep(time.Second)
	}
	return last
}

func brokenAndLogged(name string) error {
	for i := 0; ; i++ {
		_, err := get(name)
		if err == nil {
			break
		}
		log.Print(err)
		if i == 3 {
			break
		}
		time.Sleep(time.Second)
	}
	return nil
}

func hot(ctx context.Context) error {
	for { // want `^this retry loop no longer waits once ctx is done \(loop, see .*by-hand.md\)$`
		err := call(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func hotByBreak(ctx context.Context) error {
	for { // want `no longer waits once ctx is done`
		err := call(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			break
		case <-time.After(time.Second):
		}
	}
}

func notHot(ctx context.Context) error {
	for {
		err := call(ctx)
		if err == nil || errors.Is(err, context.Canceled) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func looksAfterwards(ctx context.Context) error {
	for {
		err := call(ctx)
		if err == nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		if ctx.Err() != nil {
			return err
		}
	}
}

func recursion(ctx context.Context, name string) (int, error) {
	n, err := get(name)
	if err != nil {
		time.Sleep(5 * time.Second)
		return recursion(ctx, name) // want `recursion calls itself until it succeeds, and sleeps without watching ctx`
	}
	return n, nil
}

func countedRecursion(ctx context.Context, name string, left int) (int, error) {
	n, err := get(name)
	if err != nil && left > 0 {
		time.Sleep(5 * time.Second)
		return countedRecursion(ctx, name, left-1)
	}
	return n, err
}

func endedRecursion(ctx context.Context, name string) (int, error) {
	n, err := get(name)
	if err != nil {
		if ctx.Err() != nil {
			return 0, err
		}
		time.Sleep(5 * time.Second)
		return endedRecursion(ctx, name)
	}
	return n, nil
}
