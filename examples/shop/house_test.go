//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/contrib/retrypgx/pgtest"
	"github.com/retrygo/retry/contrib/retryriver"
)

// serviceVariable makes the test binary a service.
const serviceVariable = "SHOP_SERVICE"

func TestMain(m *testing.M) {
	if name := os.Getenv(serviceVariable); name != "" {
		if err := run(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// house is all processes and the proxies between them.
type house struct {
	t        *testing.T
	dir      string
	db       *pgtest.Server
	pool     *pgxpool.Pool // past the proxies
	proxies  map[string]*proxy
	procs    map[string]*process
	settings map[string][]string // of each process
	metrics  map[string]string   // addresses
}

func newHouse(t *testing.T) *house {
	h := &house{t: t, dir: t.TempDir(), proxies: map[string]*proxy{}, procs: map[string]*process{}, metrics: map[string]string{}}
	h.catalog(goodCatalog)
	return h
}

const initialStock = 1000 // of each item

func build(t *testing.T, seed uint64) *house {
	h := newHouse(t)
	h.db = pgtest.Start(t, "max_connections=100", "idle_in_transaction_session_timeout=2s") // or the locks of a client that has vanished stay
	ctx := t.Context()
	var err error
	h.pool, err = pgxpool.New(ctx, h.db.DSN())
	require.NoError(t, err)
	t.Cleanup(h.pool.Close)
	_, err = h.pool.Exec(ctx, fmt.Sprintf(`
		CREATE TABLE item (id text PRIMARY KEY, stock int NOT NULL);
		CREATE TABLE taken (reservation text PRIMARY KEY, item text NOT NULL);
		CREATE TABLE orders (id text PRIMARY KEY, ref text NOT NULL, item text NOT NULL, reservation text NOT NULL);
		INSERT INTO item SELECT generate_series(0, %d)::text, %d`, items-1, initialStock))
	require.NoError(t, err)
	require.NoError(t, retryriver.MigratePostgres(ctx, h.pool))

	ports := freePorts(t, 2*len(processes)+len(links))
	port := func() string { p := ports[0]; ports = ports[1:]; return p }
	serves := map[string]string{"db": h.db.Addr()}
	for _, name := range processes {
		serves[name], h.metrics[name] = port(), port()
	}
	for i, link := range links {
		_, to, _ := strings.Cut(link, "-")
		p, err := newProxy(link, port(), serves[to], seed+uint64(i))
		require.NoError(t, err)
		t.Cleanup(p.close)
		h.proxies[link] = p
	}
	through := func(link string) string { return h.proxies[link].in.Addr().String() }
	database := func(link string) string { return "DATABASE=" + pgtest.DSN(through(link)) + "&connect_timeout=1" }
	h.settings = map[string][]string{
		"mail":    nil,
		"prices1": nil,
		"prices2": nil,
		"stock":   {database("stock-db")},
		"orders":  {database("orders-db") + "&pool_max_conns=16", "STOCK=" + through("orders-stock"), "MAIL=" + through("orders-mail")},
		"shop":    {"ORDERS=" + through("shop-orders"), "PRICES=" + through("shop-prices1"), "SPARE=" + through("shop-prices2")},
	}
	for _, name := range processes {
		h.settings[name] = append(h.settings[name], "LISTEN="+serves[name], "RELEASE=v1")
	}
	h.startAll(processes)
	return h
}

func (h *house) startAll(names []string) {
	for _, name := range names {
		h.settings[name] = append(h.settings[name], "METRICS="+h.metrics[name], "CATALOG="+h.path("policies.json"), "JOURNAL="+h.path(name+".jsonl"))
		h.procs[name] = h.start(name)
	}
	for _, name := range names {
		h.procs[name].awaitReady(h.t)
	}
}

func (h *house) path(name string) string { return filepath.Join(h.dir, name) }

var goodCatalog = func() []byte {
	text, err := os.ReadFile("policies.json")
	if err != nil {
		panic(err)
	}
	return text
}()

// catalog replaces the file with the policies, as an editor does.
func (h *house) catalog(text []byte) {
	require.NoError(h.t, os.WriteFile(h.path("policies.new"), text, 0o600))
	require.NoError(h.t, os.Rename(h.path("policies.new"), h.path("policies.json")))
}

// changed returns the catalog with other attempts for a policy, so that each change can be seen.
func changed(n int) []byte {
	return bytes.Replace(goodCatalog, []byte(`"max_attempts": 6`), fmt.Appendf(nil, `"max_attempts": %d`, 6+n), 1)
}

// houses counts the calls of freePorts.
var houses atomic.Int64

// freePorts returns n ports that were free a moment ago, on a loopback address of this house's own; pgtest has another.
func freePorts(t *testing.T, n int) (addrs []string) {
	pid, house := int64(os.Getpid()), houses.Add(1)
	host := fmt.Sprintf("127.%d.%d.%d", 64*(1+house%2+1)|pid>>16&63, pid>>8&255, pid&255)
	for range n {
		l, err := net.Listen("tcp", host+":0")
		require.NoError(t, err)
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs
}

// process is a running service.
type process struct {
	name    string
	command *exec.Cmd
	stdin   io.Closer
	ready   chan struct{}
	gone    chan struct{}
	mu      sync.Mutex
	stderr  bytes.Buffer
}

func (h *house) start(name string) *process {
	executable, err := os.Executable()
	require.NoError(h.t, err)
	p := &process{name: name, command: exec.Command(executable), ready: make(chan struct{}), gone: make(chan struct{})}
	p.command.Env = append(os.Environ(), serviceVariable+"="+strings.TrimRight(name, "12"))
	for _, s := range h.settings[name] {
		p.command.Env = append(p.command.Env, "SHOP_"+s)
	}
	p.stdin, err = p.command.StdinPipe()
	require.NoError(h.t, err)
	stdout, err := p.command.StdoutPipe()
	require.NoError(h.t, err)
	p.command.Stderr = p
	require.NoError(h.t, p.command.Start())
	go func() {
		defer close(p.gone)
		scanner := bufio.NewScanner(stdout)
		if scanner.Scan() {
			close(p.ready)
		}
		for scanner.Scan() {
		}
		_ = p.command.Wait()
	}()
	h.t.Cleanup(func() { // if it is still there
		_ = p.command.Process.Kill()
		<-p.gone
	})
	return p
}

// Write keeps the beginning of what the process says on its standard error.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stderr.Len() < 100<<10 {
		p.stderr.Write(b)
	}
	return len(b), nil
}

func (p *process) awaitReady(t *testing.T) {
	select {
	case <-p.ready:
	case <-p.gone:
		require.FailNow(t, "a service ended at once", "%s: %s", p.name, p.stderr.String())
	}
}

func (p *process) signal(s syscall.Signal) { _ = p.command.Process.Signal(s) }

func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.gone
}

// stop ends all services in the order in which they call each other.
func (h *house) stop(names []string) {
	for i := len(names) - 1; i >= 0; i-- {
		p := h.procs[names[i]]
		_ = p.stdin.Close()
		select {
		case <-p.gone:
		case <-time.After(time.Minute):
			require.Fail(h.t, "a service does not end", "%s\n%s", p.name, p.stacks())
		}
	}
}

// stacks ends the process and returns its goroutines.
func (p *process) stacks() string {
	p.signal(syscall.SIGQUIT)
	<-p.gone
	return p.stderr.String()
}

// scrape returns the metrics of a process by their names, or nothing if it does not answer.
func (h *house) scrape(name string) map[string]*dto.MetricFamily {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	req := must(http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.metrics[name], nil))
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	return parse(resp.Body)
}

// holds returns how many goroutines and files a process has.
func (h *house) holds(name string) (goroutines, files int) {
	found := h.scrape(name)
	if found == nil {
		return -1, -1
	}
	value := func(name string) int { return int(found[name].Metric[0].Gauge.GetValue()) }
	return value("go_goroutines"), value("process_open_fds")
}

// begin and end make a fault happen.
func (h *house) begin(f fault) {
	switch f.kind {
	case kill:
		h.procs[f.target].kill()
	case suspend:
		if f.target == "postgres" {
			h.signalBackends(syscall.SIGSTOP)
		} else {
			h.procs[f.target].signal(syscall.SIGSTOP)
		}
	case restart:
		h.db.Kill(h.t)
	case badCatalog:
		h.catalog([]byte(`{"policies": {"shop.orders": {"max_attempts": 0}, "no.such": {}`))
	default:
		h.proxies[f.target].set(rule{kind: f.kind, after: f.after, delay: f.delay, hint: f.hint})
	}
}

func (h *house) end(f fault, n int) {
	switch f.kind {
	case kill:
		h.procs[f.target] = h.start(f.target)
	case suspend:
		if f.target == "postgres" {
			h.signalBackends(syscall.SIGCONT)
		} else {
			h.procs[f.target].signal(syscall.SIGCONT)
		}
	case restart:
		h.db.Up(h.t)
	case badCatalog:
		h.catalog(changed(n % 3))
	default:
		h.proxies[f.target].set(rule{})
	}
}

// signalBackends sends a signal to the processes of PostgreSQL but the first, which would then take no connection.
func (h *house) signalBackends(s syscall.Signal) {
	data, err := os.ReadDir("/proc")
	require.NoError(h.t, err)
	first := h.postmaster()
	for _, entry := range data {
		pid, err := strconv.Atoi(entry.Name())
		if err == nil && first > 0 && parent(pid) == first {
			_ = syscall.Kill(pid, s)
		}
	}
}

// postmaster returns the first process of PostgreSQL.
func (h *house) postmaster() int {
	for _, path := range must(filepath.Glob("/proc/[0-9]*/cmdline")) {
		text, err := os.ReadFile(path)
		_, port, _ := net.SplitHostPort(h.db.Addr())
		args := strings.Split(string(text), "\x00")
		if err == nil && strings.HasSuffix(args[0], "/postgres") && strings.Contains(string(text), "\x00-p\x00"+port+"\x00") {
			pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
			return pid
		}
	}
	return 0
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func parent(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, after, _ := bytes.Cut(text, []byte(") "))
	fields := bytes.Fields(after)
	if len(fields) < 2 {
		return 0
	}
	ppid, _ := strconv.Atoi(string(fields[1]))
	return ppid
}

// keepJournals copies the journals.
func (h *house) keepJournals() {
	if *keep != "" {
		_ = os.CopyFS(filepath.Join(*keep, h.t.Name()), os.DirFS(h.dir))
	}
}
