package handler

import (
	"context"
	"database/sql"
	"net/http"

	"github.com/retrygo/retry"
)

type service struct {
	db     *sql.DB
	client *http.Client
}

func (s *service) order(w http.ResponseWriter, r *http.Request) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://stock", nil) // want `http.NewRequestWithContext continues after the client of r has gone, together with the client's retry: use r.Context\(\), or context.WithoutCancel\(r.Context\(\)\)`
	if err != nil {
		return
	}
	_, _ = s.client.Do(req)
	_, _ = s.db.ExecContext(context.TODO(), "INSERT INTO orders VALUES (1)")             // want `s.db.ExecContext continues after the client of r has gone`
	_ = retry.Do(context.Background(), retry.Inline(), func(ctx context.Context) error { // want `retry.Do continues after the client of r has gone`
		return s.db.PingContext(ctx)
	})
}

func handlers(s *service) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		_, _ = s.db.BeginTx(context.Background(), nil) // want `s.db.BeginTx continues after the client of request has gone`
	})
}

// What follows is fine.

func (s *service) fine(w http.ResponseWriter, r *http.Request) {
	_, _ = s.db.ExecContext(r.Context(), "INSERT INTO orders VALUES (1)")
	_, _ = s.db.ExecContext(context.WithoutCancel(r.Context()), "INSERT INTO audit VALUES (1)")
	go func() { _, _ = s.db.ExecContext(context.Background(), "INSERT INTO audit VALUES (1)") }()
	background := context.Background()
	_ = background
}

func (s *service) start(addr string) error {
	return s.db.PingContext(context.Background())
}

func (s *service) health(w http.ResponseWriter, _ *http.Request) {
	_ = s.db.PingContext(context.Background())
}
