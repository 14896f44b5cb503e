package main

import (
	"sync"
	"time"
)

const (
	breaksAt = 6                      // failures in a row, of all tenants
	breakFor = 100 * time.Millisecond // minutes, for a service
)

// breakers has a breaker for each endpoint. The zero value is ready to use. A service bounds their number, as
// retry.Budgets does.
type breakers struct {
	mu   sync.Mutex
	list map[string]*breaker
}

func (b *breakers) of(endpoint string) *breaker {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.list[endpoint] == nil {
		if b.list == nil {
			b.list = map[string]*breaker{}
		}
		b.list[endpoint] = new(breaker)
	}
	return b.list[endpoint]
}

// breaker blocks an endpoint that only fails.
type breaker struct {
	mu       sync.Mutex
	failures int       // in a row
	until    time.Time // when to try an endpoint with too many failures again; zero before it is requested
}

func (b *breaker) failed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
}

func (b *breaker) succeeded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.until = 0, time.Time{}
}

// wait returns how long to wait.
func (b *breaker) wait(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.failures < breaksAt:
		return 0
	case b.until.IsZero():
		b.until = now.Add(breakFor)
	case !now.Before(b.until):
		b.failures, b.until = 0, time.Time{}
		return 0
	}
	return b.until.Sub(now)
}
