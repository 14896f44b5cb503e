package drivers_test

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// fault is what a proxy does with what a client has sent.
type fault uint32

const (
	pass          fault = iota
	loseRequest         // the server does not receive it: both sides are cut before
	loseReply           // the client does not receive the reply: both sides are cut when it comes
	tearReply           // the client receives half of the reply
	cutInFlight         // the server receives it, and both sides are cut at once, while the server works on it
	leaveInFlight       // the server receives it, and the client alone is cut at once, while the server works on it
	refuse              // the server does not receive it: the client receives the proxy's refusal, and both sides are cut
)

// proxy stands in front of a server and passes on what both sides send, byte for byte, until judge finds a fault.
type proxy struct {
	address string                     // to connect to
	server  atomic.Pointer[string]     // the address behind
	refusal string                     // is sent for a fault refuse
	judge   func(request string) fault // is called with what a client sent in one piece, in any goroutine
	cuts    atomic.Int32               // the number of connections that a fault has ended

	listener net.Listener
	all      sync.WaitGroup // its goroutines
	mu       sync.Mutex
	open     map[net.Conn]bool // nil when it is closed
}

// newProxy starts a proxy. It ends with the test, with all of its connections and goroutines.
func newProxy(t *testing.T, server string, judge func(request string) fault) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{address: listener.Addr().String(), judge: judge, listener: listener, open: map[net.Conn]bool{}}
	p.server.Store(&server)
	p.all.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	for conn := range p.open {
		_ = conn.Close()
	}
	p.open = nil
	p.mu.Unlock()
	p.all.Wait()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.all.Go(func() { p.serve(client) })
	}
}

// keep registers a connection to be closed with the proxy. If the proxy is closed already, keep closes the connection.
func (p *proxy) keep(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		_ = conn.Close()
		return
	}
	p.open[conn] = true
}

// serve passes on what client and server send until one of them is gone or judge finds a fault.
func (p *proxy) serve(client net.Conn) {
	p.keep(client)
	server, err := net.Dial("tcp", *p.server.Load())
	if err != nil {
		_ = client.Close()
		return
	}
	p.keep(server)
	cut := func() {
		_ = client.Close()
		_ = server.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, client)
		delete(p.open, server)
	}
	var reply atomic.Uint32 // the fault that the next reply is to meet
	ended := make(chan struct{})
	p.all.Go(func() {
		defer close(ended)
		defer cut()
		forward(client, server, func(got string) (string, bool) {
			switch fault(reply.Load()) {
			case loseReply:
				return "", false
			case tearReply:
				return got[:len(got)/2], false
			default:
				return got, true
			}
		})
	})
	defer cut()
	forward(server, client, func(got string) (string, bool) {
		found := p.judge(got)
		if found != pass {
			p.cuts.Add(1)
			reply.Store(uint32(found))
		}
		switch found {
		case loseRequest:
			return "", false
		case refuse:
			_, _ = client.Write([]byte(p.refusal))
			return "", false
		case cutInFlight:
			return got, false
		case leaveInFlight:
			_ = client.Close()
			_, _ = server.Write([]byte(got))
			<-ended // with the reply, which nobody receives
			return "", false
		default:
			return got, true
		}
	})
}

// forward reads from one side and sends what edit returns to the other, until one of them is gone or there is nothing
// more to send.
func forward(to, from net.Conn, look func(got string) (send string, more bool)) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			send, more := look(string(buf[:n]))
			if _, err := to.Write([]byte(send)); err != nil || !more {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// at returns a judge that answers each client message containing the text with the next fault, and passes everything
// else.
func at(text string, faults ...fault) func(request string) fault {
	var seen atomic.Int32
	return func(request string) fault {
		if !strings.Contains(request, text) {
			return pass
		}
		if n := int(seen.Add(1)); n <= len(faults) {
			return faults[n-1]
		}
		return pass
	}
}
