//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// How a customer's request ended, in the journal of the customers.
const (
	acknowledged = "acknowledged" // with the id of the order
	soldOut      = "sold out"
	inDoubt      = "in doubt"
	refused      = "refused" // certainly without an order
)

// customers order at the shop, each order with a reference of its own. Every other one has a key, and repeats a failure
// until it has an answer.
type customers struct {
	journal *journal
	began   time.Time
	shop    string
	client  *http.Client
	rnd     *rand.Rand
	wg      sync.WaitGroup
	metrics http.Handler
}

const items = 20

func newCustomers(j *journal, shop string, seed uint64) *customers {
	measured := must(newMetrics())
	return &customers{journal: j, began: time.Now(), shop: shop, metrics: measured.handler, rnd: rand.New(rand.NewPCG(seed, 2)), client: &http.Client{Transport: &retryhttp.Transport{
		Base: &tries{journal: j, layer: "customers.shop", base: retryhttp.NewBase()},
		Policy: retry.Policy{
			Name: "customers.shop", MaxAttempts: 4, MaxHint: 3 * time.Second, AttemptTimeout: 9 * time.Second,
			Backoff: retry.Backoff{Base: 100 * time.Millisecond, Cap: time.Second, Jitter: retry.FullJitter},
			Budget:  retry.NewBudget(budget), Observe: retry.Observers(j.observe, measured.observe),
		},
		IdempotencyKey:  retryhttp.WorkKey,
		TimeLeftHeaders: map[string]string{shop: retryhttp.EnvoyTimeLeftHeader},
	}}}
}

// come sends orders, rate a second, until ctx ends, and then waits for the last answers.
func (c *customers) come(ctx context.Context, rate int) {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			c.wg.Wait()
			return
		case <-tick.C:
		}
		ref, item := fmt.Sprintf("%06d", n), c.rnd.IntN(items)
		c.wg.Go(func() { c.order(ctx, ref, item, n%2 == 0) })
	}
}

// order makes one order and writes down how it ended. An order with a key is settled: the customer asks again until the
// answer is certain, more seldom while the storm lasts.
func (c *customers) order(storm context.Context, ref string, item int, keyed bool) {
	ctx := context.Background()
	if keyed {
		ref += "k"
		ctx = retryhttp.WithWork(ctx, ref)
	}
	waits := retry.Backoff{Base: 2 * time.Second, Cap: time.Minute, Jitter: retry.FullJitter}
	for n := 1; ; n++ {
		began := time.Now()
		status, text := c.ask(ctx, ref, fmt.Sprintf("/orders?item=%d", item), keyed)
		l := line{What: "order", Ref: ref, Status: status, Took: time.Since(began).Seconds()}
		if n > 1 {
			l.What = "again"
		}
		if status == acknowledged {
			l.ID = text
		} else {
			l.Err = text
		}
		c.journal.add(l, nil)
		if !keyed || status == acknowledged || status == soldOut || time.Since(c.began) > *long+2*time.Minute {
			return
		}
		if over := pause(storm.Done(), waits.Jittered(n, 0, rand.Float64())); over { // impatient at last
			time.Sleep(waits.Jittered(2, 0, rand.Float64()))
		}
	}
}

// ask sends an order, and returns how it ended, with the id or the error.
func (c *customers) ask(ctx context.Context, ref, path string, keyed bool) (status, text string) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.shop+path, nil)
	if err != nil {
		return refused, err.Error()
	}
	req.Header.Set(refHeader, ref)
	resp, err := c.client.Do(req)
	if err == nil {
		defer resp.Body.Close()
		err = retryhttp.CheckResponse(resp)
	}
	var id []byte
	if err == nil {
		id, err = io.ReadAll(resp.Body)
		if err != nil {
			return inDoubt, "the answer broke off: " + err.Error()
		}
	}
	switch {
	case err == nil:
		return acknowledged, string(id)
	case resp != nil && resp.StatusCode == http.StatusConflict:
		return soldOut, err.Error()
	case keyed || retry.IsAmbiguous(err): // under a key a failure says that one may ask again, not that nothing was done
		return inDoubt, err.Error()
	}
	return refused, err.Error()
}
