package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
	"github.com/retrygo/retry/contrib/retrypgx"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryjob"
)

// orders places orders, and delivers their mails.
type orders struct {
	*service
	pool  *pgxpool.Pool
	queue *retryriver.Queue
	stock *grpc.ClientConn
}

// orderService serves
//
//	POST /orders?item=7    takes the item from the stock and, in one transaction, writes the order and its mail
func (s *service) orderService(ctx context.Context) (stop func(), err error) {
	o := &orders{service: s}
	if o.stock, err = s.dialStock(); err != nil {
		return nil, err
	}
	if o.pool, err = pgxpool.New(ctx, setting("DATABASE")); err != nil {
		return nil, err
	}
	err = retry.Do(ctx, startPolicy, func(ctx context.Context) error {
		o.queue, err = retryriver.NewPostgres(ctx, o.pool, s.mails())
		return err
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", o.place)
	stopHTTP, err := serve(setting("LISTEN"), retryhttp.Handler(mux, retryhttp.HandlerOptions{Trust: trusted}))
	return func() {
		stopHTTP()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, _ = o.queue.Shutdown(ctx)
		o.pool.Close()
		_ = o.stock.Close()
	}, err
}

// dialStock returns a channel to stock with retries.
func (s *service) dialStock() (*grpc.ClientConn, error) {
	opts, err := retrygrpc.DialOptions(retry.Policy{}, retrygrpc.Options{
		PolicyFor:  func(string) retry.Policy { return s.policies.stock.Policy() },
		Idempotent: func(string) bool { return true }, // Take takes once for each reservation
	})
	if err != nil {
		return nil, err
	}
	opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(s.journal.tryGRPC("orders.stock")),
		// Without these, calls fail for up to two minutes after an outage, and hang on a connection that has died silently.
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: time.Second,
			Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: time.Second}))
	return grpc.NewClient("passthrough:///"+setting("STOCK"), opts...)
}

// tryGRPC returns an interceptor with a line for each attempt.
func (j *journal) tryGRPC(layer string) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		j.add(line{What: "try", Layer: layer}, nil)
		return invoke(ctx, method, req, reply, conn, opts...)
	}
}

// place is the handler of an order. An order with a key is placed once, however often it is repeated. One without a
// key is placed by each request.
func (o *orders) place(w http.ResponseWriter, r *http.Request) {
	ctx, key := r.Context(), r.Header.Get("Idempotency-Key")
	reservation := cmp.Or(key, rand.Text())
	ref, item := r.Header.Get(refHeader), r.FormValue("item")
	err := takeFrom(ctx, o.stock, take{Reservation: reservation, Item: item, Ref: ref})
	if status.Code(err) == codes.FailedPrecondition {
		http.Error(w, "sold out", http.StatusConflict)
		return
	} else if err != nil {
		retryhttp.WriteError(w, err)
		return
	}
	var id string
	err = retrypgx.Tx(ctx, o.pool, o.policies.ordersDB.Policy(), &retrypgx.Options{Probe: true, EndTimeout: time.Second}, func(ctx context.Context, tx pgx.Tx) error {
		o.journal.add(line{What: "try", Layer: "orders.db", Ref: ref}, nil)
		id = cmp.Or(key, rand.Text()) // a new one for each attempt, so that an order that is written twice is seen
		_, err := retryriver.InsertTx(ctx, o.queue.Adapter(), retryriver.ClientOf[pgx.Tx](o.queue), tx, mailOf(id))
		if errors.Is(err, retryjob.ErrDuplicate) {
			return nil // an earlier request with this key has written both
		} else if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "INSERT INTO orders (id, ref, item, reservation) VALUES ($1, $2, $3, $4)", id, ref, item, reservation)
		return err
	})
	if err != nil {
		retryhttp.WriteError(w, err)
		return
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprint(w, id)
}
