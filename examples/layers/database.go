package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"
)

// trouble is the fault of the database: it refuses each query, or never answers.
type trouble bool

const (
	outage trouble = false
	hang   trouble = true
)

// database makes the query of one chain, and a function that counts the queries that have arrived.
type database func(trouble) (query func(context.Context) error, arrived func() (int, error), err error)

// standIn is a fake database in memory.
func standIn(t trouble) (query func(context.Context) error, arrived func() (int, error), err error) {
	var calls atomic.Int64
	query = func(ctx context.Context) error {
		calls.Add(1)
		if t == hang {
			<-ctx.Done()
			return ctx.Err()
		}
		return errors.New("sorry, too many clients already")
	}
	return query, func() (int, error) { return int(calls.Load()), nil }, nil
}

// postgres returns a database of the server at dsn, in a schema that close drops. PostgreSQL itself counts the queries:
// a sequence keeps its value when a transaction fails.
func postgres(ctx context.Context, dsn string) (db database, close func(), err error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, nil, err
	}
	config.MaxConns = 64 // abandoned queries continue
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	_, err = pool.Exec(ctx, `
		DROP SCHEMA IF EXISTS retry_layers CASCADE;
		CREATE SCHEMA retry_layers;
		CREATE FUNCTION retry_layers.stock(chain regclass, hangs bool) RETURNS int LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM nextval(chain);
			IF hangs THEN PERFORM pg_sleep(10); END IF;
			RAISE EXCEPTION 'sorry, too many clients already' USING ERRCODE = 'too_many_connections';
		END $$`)
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	var chains atomic.Int64
	db = func(t trouble) (func(context.Context) error, func() (int, error), error) {
		name := fmt.Sprintf("retry_layers.chain%d", chains.Add(1))
		if _, err := pool.Exec(ctx, "CREATE SEQUENCE "+name+" MINVALUE 0"); err != nil {
			return nil, nil, err
		}
		if _, err := pool.Exec(ctx, "SELECT nextval($1)", name); err != nil { // 0, so that last_value is the count
			return nil, nil, err
		}
		query := func(ctx context.Context) error {
			var left int
			return pool.QueryRow(ctx, "SELECT retry_layers.stock($1, $2)", name, bool(t)).Scan(&left)
		}
		arrived := func() (n int, err error) {
			return n, pool.QueryRow(ctx, "SELECT last_value FROM "+name).Scan(&n)
		}
		return query, arrived, nil
	}
	return db, func() {
		_, _ = pool.Exec(context.WithoutCancel(ctx), "DROP SCHEMA retry_layers CASCADE")
		pool.Close()
	}, nil
}
