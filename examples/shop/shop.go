package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
	"github.com/retrygo/retry/retryhttp"
)

// refHeader names the request of a customer in all services, for the journals alone.
const refHeader = "Order-Ref"

// trusted reports that the clients are services of our own, which share the machine.
func trusted(*http.Request) bool { return true }

// shop serves the customers:
//
//	POST /orders?item=7    asks for the price of the item, and orders it
func (s *service) shop(ctx context.Context) (stop func(), err error) {
	overHTTP2 := retryhttp.NewBase()
	overHTTP2.Protocols = new(http.Protocols)
	overHTTP2.Protocols.SetUnencryptedHTTP2(true)
	overHTTP2.HTTP2.SendPingTimeout, overHTTP2.HTTP2.PingTimeout = time.Second, time.Second // far below the policy's timeouts
	twice := s.policies.orders.Hedge()                                                      // only orders with a key are hedged
	twice.Observe = s.journal.observeHedges("shop.orders")
	orders := (&retryhttp.Transport{
		Base:            s.tries("shop.orders", overHTTP2),
		PolicyFor:       of(s.policies.orders),
		Hedge:           &retryhttp.Hedge{Policy: twice},
		IdempotencyKey:  retryhttp.WorkKey,
		TimeLeftHeaders: map[string]string{setting("ORDERS"): retryhttp.EnvoyTimeLeftHeader},
	}).Client()
	first, spare := s.tries("shop.prices", retryhttp.NewBase()), s.tries("shop.prices", retryhttp.NewBase())
	spare.to = setting("SPARE")
	hedge := s.policies.prices.Hedge()
	journal := s.journal.observeHedges("shop.prices")
	hedge.Observe = func(ctx context.Context, e retryhedge.Event) {
		journal(ctx, e)
		s.live.ObserveHedge(ctx, e)
	}
	prices := (&retryhttp.Transport{
		Base:      first,
		PolicyFor: of(s.policies.prices),
		Hedge:     &retryhttp.Hedge{Policy: hedge, Base: spare},
	}).Client()
	downloads, cancel := context.WithCancel(ctx)
	var nights sync.WaitGroup
	nights.Go(func() { s.nightly(downloads) })
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", atOnce(8, func(w http.ResponseWriter, r *http.Request) {
		answer, err := call(prices, r, http.MethodGet, "http://"+setting("PRICES")+"/price?item="+r.FormValue("item"))
		if err == nil {
			answer, err = call(orders, r, http.MethodPost, "http://"+setting("ORDERS")+"/orders?item="+r.FormValue("item")+"&price="+answer)
		}
		if err != nil {
			retryhttp.WriteError(w, err)
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, answer)
	}))
	stopHTTP, err := serve(setting("LISTEN"), retryhttp.Handler(mux, retryhttp.HandlerOptions{Trust: trusted}))
	return func() { cancel(); stopHTTP(); nights.Wait() }, err
}

var errBusy = retry.After(time.Second, errors.New("too many orders are under way"))

// atOnce serves at most n requests at a time and sheds the others at once. Budgets limit retries, and not all the
// customers who come back after an outage. Without this the shop is too busy with late work to do any in time, and
// stays so.
func atOnce(n int, handle http.HandlerFunc) http.HandlerFunc {
	free := make(chan struct{}, n)
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case free <- struct{}{}:
			defer func() { <-free }()
			handle(w, r)
		default:
			retryhttp.WriteError(w, errBusy)
		}
	}
}

// tries returns the transport of a client, with a line in the journal for each attempt.
func (s *service) tries(layer string, base *http.Transport) *tries {
	base.IdleConnTimeout = 10 * time.Second
	return &tries{journal: s.journal, layer: layer, base: base}
}

// call makes a request for a customer's request, under its key, and returns the text of the answer. A POST without a
// key is not repeated.
func call(client *http.Client, from *http.Request, method, url string) (string, error) {
	ctx := retryhttp.WithWork(from.Context(), from.Header.Get("Idempotency-Key"))
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set(refHeader, from.Header.Get(refHeader))
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if err := retryhttp.CheckResponse(resp); err != nil {
		return "", err
	}
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// nightly downloads the export again and again, since the nights of this shop are short.
func (s *service) nightly(ctx context.Context) {
	client := (&retryhttp.Transport{
		Base: s.tries("shop.export", retryhttp.NewBase()), PolicyFor: of(s.policies.export), Resume: true, StallTimeout: 2 * time.Second,
	}).Client()
	for ctx.Err() == nil {
		err := download(ctx, client, "http://"+setting("PRICES")+"/export", setting("RELEASE"))
		if ctx.Err() != nil {
			return
		}
		s.journal.add(line{What: "export"}, err)
		time.Sleep(time.Second)
	}
}

var errNotWhole = errors.New("the export is not whole")

// download reads the export of the release and compares its SHA-256 with the original's.
func download(ctx context.Context, client *http.Client, url, release string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := retryhttp.CheckResponse(resp); err != nil {
		return err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if sha256.Sum256(body) != sha256.Sum256(export(release)) {
		return fmt.Errorf("%w: it has %d bytes", errNotWhole, len(body))
	}
	return nil
}
