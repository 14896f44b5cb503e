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

	mu      sync.Mutex
	busy    bool // a request has begun and is not answered yet
	http2   bool
	instead []HTTPFault // the replacements of the next RST_STREAM frames

	frames []byte // an incomplete HTTP/2 frame; used only by Write, which net/http does not call concurrently
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

// hangUp ends the connection so that what was written arrives: a TCP connection closed with unread data is reset.
func (c *conn) hangUp() error {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		return tcp.CloseWrite()
	}
	return c.Conn.Close()
}

// replaceReset sends fault in place of the next RST_STREAM, which net/http sends if a handler panics. net/http has no
// function for these faults, and does not expose its framer.
func (c *conn) replaceReset(fault HTTPFault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.instead = append(c.instead, fault)
}

// Frames of HTTP/2 (RFC 9113, sections 4.1, 6.4 and 6.8).
const (
	frameHeader   = 9
	typeRST       = 0x3
	refusedStream = 0x7
)

var goAway = []byte{0, 0, 8, 0x7, 0, 0, 0, 0, 0 /* LastStreamID */, 0, 0, 0, 0 /* NO_ERROR */, 0, 0, 0, 0}

// Write replaces frames as replaceReset describes. It does not hold the lock while it waits for the client.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	http2 := c.http2
	c.mu.Unlock()
	if !http2 {
		return c.Conn.Write(p)
	}
	c.frames = append(c.frames, p...)
	var out []byte
	for len(c.frames) >= frameHeader {
		size := frameHeader + int(c.frames[0])<<16 + int(c.frames[1])<<8 + int(c.frames[2])
		if len(c.frames) < size {
			break
		}
		frame := c.frames[:size]
		c.frames = c.frames[size:]
		fault := HTTPFault("")
		if frame[3] == typeRST {
			fault = c.replaced()
		}
		switch fault {
		case RefuseStream:
			frame[size-1] = refusedStream
		case GoAway:
			_, _ = c.Conn.Write(append(out, goAway...))
			return len(p), c.hangUp()
		}
		out = append(out, frame...)
	}
	_, err := c.Conn.Write(out)
	return len(p), err
}

// replaced returns the bytes to send in place of an RST_STREAM, or none to send the RST_STREAM itself.
func (c *conn) replaced() HTTPFault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.instead) == 0 {
		return ""
	}
	fault := c.instead[0]
	c.instead = c.instead[1:]
	return fault
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
