package retrytest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

type listener struct {
	net.Listener
	server *Server
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	l.server.conns++
	l.server.active.Add(1)
	return &conn{Conn: c, server: l.server, number: l.server.conns, left: sync.OnceFunc(l.server.active.Done)}, nil
}

type connKey struct{}

// conn is the server's end of a connection.
type conn struct {
	net.Conn
	server *Server
	number int
	left   func() // called once its goroutine has ended

	mu    sync.Mutex
	busy  bool // a request has begun and is not answered yet
	http2 bool
}

// Read resets the connection if a request begins that the script resets.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n == 0 || !c.begins(p[:n]) {
		return n, err
	}
	a, ok := c.server.record(Request{Conn: c.number}, func() (Answer, bool) {
		a, _, ok := c.server.script.take("a request", func(a Answer) fit {
			if a.Fault == ResetUnread {
				return takes
			}
			return never
		})
		return a, ok
	})
	if !ok {
		return n, err
	}
	_ = sleep(c.server.ctx, a.Takes)
	c.reset()
	return 0, net.ErrClosed
}

// begins reports whether the bytes that were read begin an HTTP/1 request.
func (c *conn) begins(p []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy || c.http2 {
		return false
	}
	c.http2 = bytes.HasPrefix(p, []byte("PRI * HTTP/2.0"))
	c.busy = !c.http2
	return c.busy
}

// answered records that the next bytes belong to another request.
func (c *conn) answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = false
}

// reset closes the connection so that the client reads ECONNRESET.
func (c *conn) reset() {
	switch c := c.Conn.(type) {
	case *net.TCPConn:
		_ = c.SetLinger(0)
	case *pipeConn:
		c.reset.Store(true)
	}
	_ = c.Conn.Close()
}

type pipeListener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *pipeListener) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	reset := new(atomic.Bool)
	select {
	case l.conns <- &pipeConn{theirs, reset}:
		return &pipeConn{ours, reset}, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: ctx.Err()}
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// pipeConn is one end of a connection of net.Pipe that can be reset.
type pipeConn struct {
	net.Conn
	reset *atomic.Bool // of both ends
}

func (c *pipeConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.lost("read", err)
}

func (c *pipeConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, c.lost("write", err)
}

// lost returns the error of a TCP connection in place of err.
func (c *pipeConn) lost(op string, err error) error {
	if c.reset.Load() && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe)) {
		return reset(op)
	}
	return err
}

// reset returns the error of a connection that its peer has reset.
func reset(op string) error {
	return &net.OpError{Op: op, Net: "tcp", Err: os.NewSyscallError(op, syscall.ECONNRESET)}
}
