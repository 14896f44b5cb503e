//go:build linux

package main

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rule is what a proxy does while a fault lasts. The zero rule passes everything on.
type rule struct {
	kind  kind
	after int           // of cuts in the middle: at most how many bytes pass first
	delay time.Duration // of each part of a stream
	hint  int           // of answers: Retry-After in seconds; 0 means none
	began time.Time
}

// proxy connects the clients of one link with its server.
type proxy struct {
	link    string
	to      string
	rule    atomic.Pointer[rule]
	deaths  atomic.Int64 // how often all connections died
	in      net.Listener
	answers *http.Server
	accepts *handOver

	mu    sync.Mutex
	rnd   *rand.Rand
	conns map[net.Conn]bool // of clients
	done  sync.WaitGroup
}

func newProxy(link, listen, to string, seed uint64) (*proxy, error) {
	in, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, err
	}
	p := &proxy{link: link, to: to, in: in, rnd: rand.New(rand.NewPCG(seed, 1)), conns: map[net.Conn]bool{}}
	p.rule.Store(&rule{})
	p.accepts = &handOver{conns: make(chan net.Conn), closed: make(chan struct{}), addr: in.Addr()}
	p.answers = &http.Server{Handler: http.HandlerFunc(p.answer), Protocols: new(http.Protocols), ReadHeaderTimeout: 10 * time.Second}
	p.answers.Protocols.SetHTTP1(true)
	p.answers.Protocols.SetUnencryptedHTTP2(true)
	p.done.Go(func() { _ = p.answers.Serve(p.accepts) })
	p.done.Go(p.serve)
	return p, nil
}

// set begins or ends a fault. Connections that would not notice it, or that it has broken, end.
func (p *proxy) set(r rule) {
	r.began = time.Now()
	old := p.rule.Swap(&r)
	if r.kind == vanish {
		p.deaths.Add(1)
	}
	if r.kind == down || r.kind == answer503 || r.kind == answer429 || old.kind == answer503 || old.kind == answer429 || old.kind == blackHole {
		p.closeAll()
	}
}

func (p *proxy) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) close() {
	_ = p.in.Close()
	_ = p.answers.Close()
	p.closeAll()
	p.done.Wait()
}

func (p *proxy) keep(c net.Conn, yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if yes {
		p.conns[c] = true
	} else {
		delete(p.conns, c)
	}
}

func (p *proxy) draw(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rnd.IntN(n)
}

// answer stands in for the server.
func (p *proxy) answer(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	rule := p.rule.Load()
	if rule.hint > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(rule.hint))
	}
	w.Header().Set("Connection", "close")
	status := http.StatusServiceUnavailable
	if rule.kind == answer429 {
		status = http.StatusTooManyRequests
	}
	w.WriteHeader(status)
}

func (p *proxy) serve() {
	for {
		client, err := p.in.Accept()
		if err != nil {
			return
		}
		switch p.rule.Load().kind {
		case cutBefore, down:
			reset(client)
			continue
		case vanish: // nobody is there
			p.done.Go(func() {
				p.keep(client, true)
				defer p.keep(client, false)
				_, _ = io.Copy(io.Discard, client)
				_ = client.Close()
			})
			continue
		case answer503, answer429:
			select {
			case p.accepts.conns <- client:
			case <-p.accepts.closed:
				_ = client.Close()
			}
			continue
		}
		p.done.Go(func() { p.connect(client) })
	}
}

// reset closes a connection without a goodbye.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// connect passes the streams of a connection on until it ends.
func (p *proxy) connect(client net.Conn) {
	p.keep(client, true)
	defer p.keep(client, false)
	server, err := net.DialTimeout("tcp", p.to, 2*time.Second)
	if err != nil {
		reset(client)
		return
	}
	closed := make(chan struct{})
	end := sync.OnceFunc(func() { close(closed); reset(client); reset(server) })
	defer end()
	var both sync.WaitGroup
	deaths := p.deaths.Load()
	lost := &loss{dropped: make(chan struct{}, 1)}
	both.Go(func() { p.pump(server, client, true, deaths, lost, closed, end) })
	both.Go(func() { p.pump(client, server, false, deaths, lost, closed, end) })
	both.Wait()
}

var errCut = errors.New("cut")

// loss is what the two directions of a connection have in common. Once it has begun, no answer comes back.
type loss struct {
	begun   atomic.Bool
	dropped chan struct{} // an answer
}

// unnoticed is how long a server keeps a connection that has died, if it does not write to it.
const unnoticed = 5 * time.Second

// pump passes one direction on, as the rule of the moment says. A connection that was there at a death stays dead: neither
// side learns of the other.
func (p *proxy) pump(to io.Writer, from io.Reader, up bool, deaths int64, lost *loss, closed <-chan struct{}, end func()) {
	defer end()
	buffer := make([]byte, 32<<10)
	var began time.Time // of the fault for which left was drawn
	left := 0
	for {
		n, err := from.Read(buffer)
		if p.deaths.Load() != deaths && err == nil {
			_, _ = io.Copy(io.Discard, from)
			if up {
				pause(closed, unnoticed)
			} else {
				<-closed
			}
			return
		}
		if n > 0 {
			r := p.rule.Load()
			part := buffer[:n]
			if r.kind == cutDuring && r.began != began {
				began, left = r.began, p.draw(r.after+1)
			}
			if err := p.apply(r, to, part, up, &left, lost, closed); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// commit is how pgx sends it. The query is in a message of its own.
var commit = []byte("commit\x00")

func (p *proxy) apply(r *rule, to io.Writer, part []byte, up bool, left *int, lost *loss, closed <-chan struct{}) error {
	if !up && lost.begun.Load() {
		select {
		case lost.dropped <- struct{}{}:
		default:
		}
		return nil
	}
	switch r.kind {
	case cutDuring:
		if len(part) > *left {
			_, _ = to.Write(part[:*left])
			return errCut
		}
		*left -= len(part)
	case cutAfter: // the work is done, and its answer is lost
		if !up && p.draw(3) == 0 {
			return errCut
		}
	case commitBefore, commitAfter:
		if up && bytes.HasSuffix(part, commit) && p.draw(2) == 0 {
			if r.kind == commitAfter {
				lost.begun.Store(true)
				_, _ = to.Write(part)
				select { // it is done once there is an answer, or the server is gone
				case <-lost.dropped:
				case <-closed:
				}
			}
			return errCut
		}
	case commitSilence:
		if up && bytes.HasSuffix(part, commit) { // not even a probe gets an answer
			p.rule.CompareAndSwap(r, &rule{kind: blackHole, began: r.began})
		}
	case slow:
		pause(closed, r.delay)
	case blackHole: // what is asked arrives, and is done
		for !up && p.rule.Load() == r { // it ends with the fault, which closes the connection
			if pause(closed, 50*time.Millisecond) {
				return errCut
			}
		}
		if !up {
			return errCut
		}
	}
	_, err := to.Write(part)
	return err
}

// pause waits, and reports whether closed ended it.
func pause(closed <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-closed:
		return true
	case <-timer.C:
		return false
	}
}

// handOver is the listener of connections that another one has accepted.
type handOver struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	addr   net.Addr
}

func (h *handOver) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

func (h *handOver) Close() error   { h.once.Do(func() { close(h.closed) }); return nil }
func (h *handOver) Addr() net.Addr { return h.addr }

func TestACommitWithoutAnswerIsDone(t *testing.T) {
	const times = 40
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	committed := make(chan bool, times)
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			_, err = io.ReadFull(conn, make([]byte, len(commit)))
			committed <- err == nil
			_, _ = conn.Write([]byte("done"))
			go func() { _, _ = io.Copy(io.Discard, conn); _ = conn.Close() }()
		}
	}()
	p, err := newProxy("client-server", "127.0.0.1:0", server.Addr().String(), 1)
	require.NoError(t, err)
	t.Cleanup(p.close)
	p.set(rule{kind: commitAfter})
	lost := 0
	for range times {
		conn, err := net.Dial("tcp", p.in.Addr().String())
		require.NoError(t, err)
		_, err = conn.Write(commit)
		require.NoError(t, err)
		answer := make([]byte, len("done"))
		n, err := io.ReadFull(conn, answer)
		require.NoError(t, conn.Close())
		require.True(t, <-committed)
		if err != nil {
			require.Zero(t, n)
			lost++
		}
	}
	require.Positive(t, lost)
	require.Less(t, lost, times, "about half")
}
