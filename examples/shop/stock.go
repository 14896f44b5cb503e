package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"net"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/retrygo/retry/contrib/retrygrpc"
	"github.com/retrygo/retry/retrysql"
)

// take is a request to take one item. It is sent as JSON in a message of protobuf's own, so that this program needs no
// generated code.
type take struct {
	Reservation string // the item is taken once for each
	Item, Ref   string
}

func takeFrom(ctx context.Context, stock *grpc.ClientConn, t take) error {
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return stock.Invoke(ctx, "/shop.Stock/Take", wrapperspb.Bytes(text), new(emptypb.Empty))
}

// stocks has the items.
type stocks struct {
	*service
	db *sql.DB
}

// stockService serves the gRPC method /shop.Stock/Take.
func (s *service) stockService(context.Context) (stop func(), err error) {
	db, err := sql.Open("pgx", setting("DATABASE"))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(12)
	db.SetMaxIdleConns(12)
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(retrygrpc.UnaryServerInterceptor(nil)))
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "shop.Stock", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{
		MethodName: "Take", Handler: handleTake,
	}}}, &stocks{s, db})
	listener, err := net.Listen("tcp", setting("LISTEN"))
	if err != nil {
		return nil, err
	}
	go func() { _ = server.Serve(listener) }()
	return func() { server.GracefulStop(); _ = db.Close() }, nil
}

// handleTake is the handler that protoc would generate.
func handleTake(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
	in := new(wrapperspb.BytesValue)
	if err := decode(in); err != nil {
		return nil, err
	}
	return interceptor(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/shop.Stock/Take"}, func(ctx context.Context, _ any) (any, error) {
		var t take
		if err := json.Unmarshal(in.GetValue(), &t); err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		return new(emptypb.Empty), srv.(*stocks).take(ctx, t)
	})
}

var errSoldOut = status.Error(codes.FailedPrecondition, "sold out")

// take takes an item from the stock. It writes the row that it reads, so repeatable read suffices. Serializable
// transactions would conflict over other items too, more often than the budget allows.
func (s *stocks) take(ctx context.Context, t take) error {
	opts := &retrysql.Options{Isolation: sql.LevelRepeatableRead, Probe: true, EndTimeout: time.Second}
	return retrysql.Tx(ctx, s.db, s.policies.stockDB.Policy(), opts, func(ctx context.Context, tx *retrysql.Txn) error {
		s.journal.add(line{What: "try", Layer: "stock.db", Ref: t.Ref}, nil)
		result, err := tx.ExecContext(ctx, "INSERT INTO taken (reservation, item) VALUES ($1, $2) ON CONFLICT DO NOTHING", t.Reservation, t.Item)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return err // it was taken already
		}
		var left int
		if err := tx.QueryRowContext(ctx, "SELECT stock FROM item WHERE id = $1", t.Item).Scan(&left); err != nil {
			return err
		}
		if left == 0 {
			return errSoldOut
		}
		_, err = tx.ExecContext(ctx, "UPDATE item SET stock = $2 WHERE id = $1", t.Item, left-1)
		return err
	})
}
