package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// refHeader names the request of a customer in all services, for the journals alone.
const refHeader = "Order-Ref"

// trusted says that the clients are services of our own, which share the machine.
func trusted(*http.Request) bool { return true }

// shop serves the customers:
//
//	POST /orders?item=7    asks for the price of the item, and orders it
func (s *service) shop(ctx context.Context) (stop func(), err error) {
	orders := (&retryhttp.Transport{
		Base:           s.base("shop.orders", ""),
		PolicyFor:      of(s.policies.orders),
		IdempotencyKey: retryhttp.WorkKey,
		TimeLeft:       map[string]string{s.orders: retryhttp.EnvoyTimeLeft},
	}).Client()
	prices := s.hedged()
	downloads, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.nightly(downloads)
	}()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		price, err := call(prices, r, http.MethodGet, "http://"+s.prices+"/price?item="+r.FormValue("item"))
		if err != nil {
			retryhttp.WriteError(w, err)
			return
		}
		id, err := call(orders, r, http.MethodPost, "http://"+s.orders+"/orders?item="+r.FormValue("item")+"&price="+price)
		if err != nil {
			retryhttp.WriteError(w, err)
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, id)
	})
	stopHTTP, err := serveHTTP(s.listen, retryhttp.Handler(mux, trusted))
	return func() { cancel(); stopHTTP(); <-ended }, err
}

// base returns the transport of a client, with a line in the journal for each attempt.
func (s *service) base(layer, to string) http.RoundTripper {
	base := retryhttp.NewBase()
	s.idle = append(s.idle, base.CloseIdleConnections)
	return &tries{journal: s.journal, layer: layer, to: to, base: base}
}

// hedged returns the client of the two replicas of prices.
func (s *service) hedged() *http.Client {
	first, spare := s.base("shop.prices", ""), s.base("shop.prices", s.spare)
	observe := s.journal.observeHedges("shop.prices")
	return &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		hedge := s.policies.prices.Hedge() // of the catalog, so it can change
		hedge.Observe = observe
		t := retryhttp.Transport{Base: first, Policy: s.policies.prices.Policy(), Hedge: &retryhttp.Hedge{Policy: hedge, Base: spare}}
		return t.RoundTrip(r)
	})}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// call makes a request for that of a customer, under its key, and returns the text of the answer. A POST without a key is
// not repeated.
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
		Base: s.base("shop.export", ""), PolicyFor: of(s.policies.export), Resume: true, StallTimeout: 2 * time.Second,
	}).Client()
	pause := retry.Policy{Name: "nightly", MaxAttempts: retry.Unlimited, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Second}}
	_ = retry.Do(ctx, pause, func(ctx context.Context) error {
		began := time.Now()
		err := download(ctx, client, "http://"+s.prices+"/export", s.release)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		l := line{What: "export", Took: time.Since(began).Seconds()}
		if err != nil {
			l.Err = err.Error()
		}
		s.journal.add(l)
		return errors.New("again")
	})
}

var errNotWhole = errors.New("the export is not whole")

// download reads the export of the release and compares its SHA-256.
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
	hash := sha256.New()
	if _, err := io.Copy(hash, resp.Body); err != nil {
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != exportSum(release) {
		return fmt.Errorf("%w: it has the SHA-256 %s", errNotWhole, got)
	}
	return nil
}
