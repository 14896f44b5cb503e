//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retrydebug"
	"github.com/retrygo/retry/retryjob"
)

// result is what one invariant came to.
type result struct {
	name, figure string
	broken       []string // how, the first few; empty if it held
}

// audit is what is known after a storm.
type audit struct {
	storm   *storm
	lines   []line // of all journals, in order
	results []result
	alarms  []alarm // those that page
}

// check waits until all work has ended and judges the storm.
func (s *storm) check(t *testing.T, recorded *recording) *audit {
	a := &audit{storm: s}
	a.drained(t)
	a.leftovers(t)
	pages := s.pages(t)
	recorded.stop()
	s.stop(processes)
	for _, name := range append(slices.Clone(processes), "customers") {
		a.lines = append(a.lines, readJournal(t, s.path(name+".jsonl"))...)
	}
	sort.SliceStable(a.lines, func(i, j int) bool { return a.lines[i].Time.Before(a.lines[j].Time) })
	a.orders(t)
	a.mails(t)
	a.runs()
	a.shown(pages)
	a.budgets()
	a.ttls(t)
	a.storms()
	a.recoveries()
	a.exports()
	a.catalogs()
	a.alerts(t, recorded)
	return a
}

func readJournal(t *testing.T, path string) (lines []line) {
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		if len(bytes.TrimSpace(scanner.Bytes())) == 0 {
			continue
		}
		var l line
		require.NoErrorf(t, json.Unmarshal(scanner.Bytes(), &l), "%s: %q", path, scanner.Text())
		lines = append(lines, l)
	}
	require.NoError(t, scanner.Err())
	return lines
}

func (a *audit) note(name, figure string, broken []string) {
	a.results = append(a.results, result{name, figure, broken})
}

// patient waits until ok, and returns how long that took, or false after limit.
func patient(limit time.Duration, ok func() bool) (time.Duration, bool) {
	began := time.Now()
	for !ok() {
		if time.Since(began) > limit {
			return limit, false
		}
		time.Sleep(250 * time.Millisecond)
	}
	return time.Since(began), true
}

// drained waits until each job has ended. A lost attempt is found after its timeout, ten seconds, an election and a round of
// the leader.
func (a *audit) drained(t *testing.T) {
	var left int
	took, ok := patient(3*time.Minute, func() bool {
		err := a.storm.pool.QueryRow(context.Background(), "SELECT count(*) FROM river_job WHERE finalized_at IS NULL").Scan(&left)
		return err == nil && left == 0
	})
	var broken []string
	if !ok {
		broken = append(broken, fmt.Sprintf("%d jobs have not ended after %s", left, took))
		for _, p := range processes {
			t.Logf("%s: %s", p, a.storm.procs[p].stderr.String())
		}
	}
	a.note("every job ends", fmt.Sprintf("%.1fs after the storm", took.Seconds()), broken)
}

// What a process may hold more than it did before the storm: the connections of pools, which stay.
const (
	moreGoroutines = 12
	moreFiles      = 16
)

// leftovers waits until nothing is left of the storm.
func (a *audit) leftovers(t *testing.T) {
	s := a.storm
	var broken []string
	worst := 0
	for _, name := range processes {
		before := s.held[name]
		var goroutines, files int
		took, ok := patient(time.Minute, func() bool {
			goroutines, files = s.holds(name)
			return goroutines >= 0 && goroutines <= before[0]+moreGoroutines && files <= before[1]+moreFiles
		})
		worst = max(worst, int(time.Since(s.ended).Seconds()))
		if !ok {
			broken = append(broken, fmt.Sprintf("%s has %d goroutines and %d files after %s, before the storm %v", name, goroutines, files, took, before))
			t.Log(s.procs[name].stacks())
		}
	}
	var locks, open int
	_, ok := patient(time.Minute, func() bool {
		err := s.pool.QueryRow(context.Background(), `SELECT
			(SELECT count(*) FROM pg_locks WHERE pid <> pg_backend_pid() AND locktype IN ('transactionid', 'tuple')),
			(SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND xact_start IS NOT NULL AND backend_type = 'client backend')`).Scan(&locks, &open)
		return err == nil && locks == 0 && open == 0
	})
	if !ok {
		broken = append(broken, fmt.Sprintf("PostgreSQL has %d row locks and %d open transactions", locks, open))
	}
	a.note("no goroutine, connection, file or row lock remains", fmt.Sprintf("seen %ds after the storm", worst), broken)
}

// row is an order in the database.
type row struct{ id, ref, item, reservation string }

// orders compares the database with the answers that the customers got.
func (a *audit) orders(t *testing.T) {
	ctx := context.Background()
	rows, err := a.storm.pool.Query(ctx, "SELECT id, ref, item, reservation FROM orders")
	require.NoError(t, err)
	byRef := map[string][]row{}
	reserved := map[string]bool{}
	total := 0
	for rows.Next() {
		var r row
		require.NoError(t, rows.Scan(&r.id, &r.ref, &r.item, &r.reservation))
		byRef[r.ref] = append(byRef[r.ref], r)
		reserved[r.reservation] = true
		total++
	}
	require.NoError(t, rows.Err())

	said := map[string]line{} // the last word
	counts := map[string]int{}
	for _, l := range a.of("customers") {
		if l.What == "order" || l.What == "again" {
			said[l.Ref] = l
			counts[l.Status]++
		}
	}
	var lost, doubled, silent []string
	doubts := map[bool]int{}
	for ref, l := range said {
		in := byRef[ref]
		switch {
		case l.Status == acknowledged && (len(in) == 0 || in[0].id != l.ID):
			lost = append(lost, fmt.Sprintf("%s was acknowledged as %s: %v", ref, l.ID, in))
		case l.Status == soldOut && len(in) > 0, l.Status == refused && len(in) > 0:
			silent = append(silent, fmt.Sprintf("%s was %s (%s), and is in the database", ref, l.Status, l.Err))
		case l.Status == inDoubt:
			doubts[len(in) > 0]++
		}
		if len(in) > 1 {
			doubled = append(doubled, fmt.Sprintf("%s: %v", ref, in))
		}
	}
	for ref := range byRef {
		if _, ok := said[ref]; !ok {
			silent = append(silent, ref+" is in the database, and its customer knows nothing")
		}
	}
	a.note("an acknowledged order is in the database", fmt.Sprintf("%d orders of %d requests acknowledged, %d of %d in the database", counts[acknowledged], len(said), total, len(said)), lost)
	a.note("no order is there twice", fmt.Sprintf("%d orders", total), doubled)
	a.note("an order in the database was acknowledged or is in doubt",
		fmt.Sprintf("%d in doubt at last, of which %d in the database; answers: %v", doubts[true]+doubts[false], doubts[true], counts), silent)

	var left, taken int
	require.NoError(t, a.storm.pool.QueryRow(ctx, "SELECT sum(stock), (SELECT count(*) FROM taken) FROM item").Scan(&left, &taken))
	var stock []string
	if items*initialStock-left != taken {
		stock = append(stock, fmt.Sprintf("%d items are missing, and %d were taken", items*initialStock-left, taken))
	}
	var without int
	require.NoError(t, a.storm.pool.QueryRow(ctx, "SELECT count(*) FROM orders WHERE reservation NOT IN (SELECT reservation FROM taken)").Scan(&without))
	if without > 0 || len(reserved) != total {
		stock = append(stock, fmt.Sprintf("%d orders without an item; %d reservations of %d orders", without, len(reserved), total))
	}
	a.note("the stock adds up", fmt.Sprintf("%d items taken for %d orders", taken, total), stock)
}

// mails compares the records of the jobs with the mails that came.
func (a *audit) mails(t *testing.T) {
	infos := readJobs(t, a.storm.db.DSN())
	b := a.deliveries(infos)
	jobs := make([]string, 0, len(infos))
	for _, info := range infos {
		jobs = append(jobs, info.JobID)
	}
	var orders, withJobs int
	require.NoError(t, a.storm.pool.QueryRow(context.Background(),
		"SELECT count(*), count(*) FILTER (WHERE 'mail-' || id = ANY($1)) FROM orders", jobs).Scan(&orders, &withJobs))
	var records []string
	if orders != withJobs || orders != b {
		records = append(records, fmt.Sprintf("%d orders, %d jobs, %d orders with a job", orders, b, withJobs))
	}
	a.note("an order and its job are written together", fmt.Sprintf("%d orders, %d jobs", orders, b), records)
}

// readJobs returns all jobs of a database, as a tool sees them.
func readJobs(t *testing.T, database string) (infos []retryjob.Info) {
	store, err := retryriver.OpenStore(context.Background(), database)
	require.NoError(t, err)
	defer store.Close()
	for info, err := range store.List(context.Background(), retryjob.Filter{}) {
		require.NoError(t, err)
		infos = append(infos, info)
	}
	return infos
}

// deliveries judges the records of jobs by the mails that came, and returns the number of jobs.
func (a *audit) deliveries(infos []retryjob.Info) int {
	came := map[string][]string{} // the attempts, by order
	for _, l := range a.of("mail") {
		if l.What == "mail" {
			came[l.Ref] = append(came[l.Ref], l.Status)
		}
	}
	var missing, twice, records []string
	mails, repeated, failures := 0, 0, 0
	for _, info := range infos {
		id := strings.TrimPrefix(info.JobID, "mail-")
		got := came[id]
		mails += len(got)
		delete(came, id)
		known, failed, ends := map[string]bool{}, 0, 0
		for _, h := range info.History {
			known[h.ID] = true
			if h.Status.Final() {
				ends++
			}
			if h.Err != "" || h.Late { // the handler of a late one may have succeeded
				failed++
			}
		}
		failures += failed
		if ends != 1 || info.Status != retryjob.Succeeded {
			records = append(records, fmt.Sprintf("%s is %s (%v) and has %d ends: %+v", info.JobID, info.Status, info.Reason, ends, info.History))
		}
		if len(got) == 0 {
			missing = append(missing, info.JobID)
		}
		if len(got) > 1 {
			repeated++
			seen := map[string]bool{}
			for _, attempt := range got {
				if seen[attempt] || !known[attempt] {
					twice = append(twice, fmt.Sprintf("%s: attempt %s came twice, or is in no record: %v", info.JobID, attempt, got))
				}
				seen[attempt] = true
			}
			if len(got) > failed+1 {
				twice = append(twice, fmt.Sprintf("%s came %d times, and its record has %d attempts that failed: %+v", info.JobID, len(got), failed, info.History))
			}
		}
	}
	var orphans []string
	for id, attempts := range came {
		orphans = append(orphans, fmt.Sprintf("%s: %v", id, attempts))
	}
	a.note("each order's mail arrives", fmt.Sprintf("%d mails for %d orders", mails, len(infos)), missing)
	a.note("a mail comes twice only after an attempt that failed, was lost or was late", fmt.Sprintf("%d orders with more than one mail, %d such attempts", repeated, failures), twice)
	a.note("no mail of an order that is not in the database", fmt.Sprintf("%d", len(orphans)), orphans)
	a.note("every record has one end, a success", fmt.Sprintf("%d records", len(infos)), records)
	return len(infos)
}

// of returns the lines of one service.
func (a *audit) of(service string) (lines []line) {
	for _, l := range a.lines {
		if l.Process == service {
			lines = append(lines, l)
		}
	}
	return lines
}

// part is one layer in one process: what one budget paid for.
type part struct {
	pid   int
	layer string
}

func (l line) part() part { return part{l.PID, strings.TrimSuffix(l.Layer, " body")} }

// runs checks that a process makes no attempt that its runs do not account for.
func (a *audit) runs() {
	runs, tries, paid, stopped := map[part]int{}, map[part]int{}, map[part]int{}, map[int]bool{}
	totals := map[string]int{}
	for _, l := range a.lines {
		switch l.What {
		case "run":
			runs[l.part()]++
			totals["runs"]++
		case "try":
			tries[l.part()]++
			totals["attempts"]++
		case "retry", "hedge":
			paid[l.part()]++
			totals[l.What]++
		case "stopped":
			stopped[l.PID] = true
		}
	}
	var broken []string
	for p, n := range tries {
		if p.layer == "orders.mail" { // whose records are checked
			continue
		}
		if over := n - runs[p] - paid[p]; over > 0 && (stopped[p.pid] || p.layer == "customers.shop") {
			broken = append(broken, fmt.Sprintf("%s of process %d made %d attempts in %d runs with %d retries and hedges", p.layer, p.pid, n, runs[p], paid[p]))
		}
	}
	a.note("every run has one outcome", fmt.Sprintf("%d runs, %d attempts, %d retries, %d hedges", totals["runs"], totals["attempts"], totals["retry"], totals["hedge"]), broken)
}

// pages returns the page of each process, by its ID.
func (s *storm) pages(t *testing.T) map[int]retrydebug.Snapshot {
	found := map[int]retrydebug.Snapshot{}
	for _, name := range processes {
		resp, err := http.Get("http://" + s.metrics[name] + "/debug/retry/?format=json")
		require.NoError(t, err)
		var page retrydebug.Snapshot
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&page))
		require.NoError(t, resp.Body.Close())
		found[s.procs[name].command.Process.Pid] = page
	}
	return found
}

// shown checks that the pages of retrydebug, of processes that had nothing left to do, have counted what is in the journals.
func (a *audit) shown(pages map[int]retrydebug.Snapshot) {
	runs, retries := map[part]int{}, map[part]int{}
	for _, l := range a.lines {
		switch l.What {
		case "run":
			runs[l.part()]++
		case "retry":
			retries[l.part()]++
		}
	}
	var broken []string
	counted := 0
	for pid, page := range pages {
		for _, p := range page.Policies {
			if at := (part{pid, p.Name}); strings.TrimSuffix(p.Name, " body") != "shop.export" && (p.Total.Runs != runs[at] || p.Total.Retries != retries[at] || p.Waiting != 0) {
				broken = append(broken, fmt.Sprintf("%s of process %d shows %d runs, %d retries, %d waiting; the journal has %d and %d",
					p.Name, pid, p.Total.Runs, p.Total.Retries, p.Waiting, runs[at], retries[at]))
			}
			counted += p.Total.Runs
		}
		if len(page.Failed) > 100 {
			broken = append(broken, fmt.Sprintf("process %d shows %d failed runs", pid, len(page.Failed)))
		}
	}
	a.note("the pages have counted every run", fmt.Sprintf("%d runs of the last processes", counted), broken)
}

const window = 10 * time.Second

// budgets checks each window of ten seconds of each budget.
func (a *audit) budgets() {
	type event struct {
		at      time.Time
		success bool
	}
	events := map[part][]event{}
	for _, l := range a.lines {
		switch {
		case l.Layer == "orders.mail":
		case l.What == "run" && l.Status == "succeeded":
			events[l.part()] = append(events[l.part()], event{l.Time, true})
		case l.What == "retry" || l.What == "hedge":
			events[l.part()] = append(events[l.part()], event{l.Time, false})
		}
	}
	var broken []string
	most, allowed, where := 0, 0.0, part{}
	for p, list := range events {
		for i, from := range list {
			retries, successes := 0, 0
			for _, e := range list[i:] {
				if e.at.Sub(from.at) >= window {
					break
				}
				if e.success {
					successes++
				} else {
					retries++
				}
			}
			b := budget
			if p.layer == "shop.export" {
				b = exportBudget
			}
			limit := float64(b.Burst) + b.Ratio*float64(successes)
			if b.Trickle > 0 {
				limit += float64(window / b.Trickle)
			}
			if retries > most {
				most, allowed, where = retries, limit, p
			}
			if float64(retries) > limit+1 { // a success can be written down after the retry that it paid for
				broken = append(broken, fmt.Sprintf("%s of process %d: %d retries and hedges within 10s, and %d successes", p.layer, p.pid, retries, successes))
			}
		}
	}
	a.note("in each window of 10s attempts ≤ runs × (1 + ratio) + burst", fmt.Sprintf("at most %d retries and hedges, of %.1f allowed (%s)", most, allowed, where.layer), broken)
}

// ttls checks that no attempt starts after the TTL of its policy. A process that was suspended can find its clock moved
// between its look at the TTL and the start.
func (a *audit) ttls(t *testing.T) {
	const slow = 250 * time.Millisecond // of a process that has no core
	var catalog struct {
		Policies map[string]struct{ TTL string }
	}
	require.NoError(t, json.Unmarshal(goodCatalog, &catalog))
	suspended := func(l line) bool { // while the run was under way
		end := l.Time.Sub(a.storm.began)
		begin := end - time.Duration(l.Took*float64(time.Second))
		return slices.ContainsFunc(a.storm.faults, func(f fault) bool {
			return f.kind == suspend && f.target == l.Process && f.begin < end && f.end+time.Second > begin
		})
	}
	var broken []string
	checked, latest := 0, 0.0
	for _, l := range a.lines {
		policy, known := catalog.Policies[l.Layer]
		if l.What != "run" || !known || suspended(l) {
			continue
		}
		ttl, err := time.ParseDuration(policy.TTL)
		require.NoError(t, err)
		checked++
		latest = max(latest, l.Start/ttl.Seconds())
		if l.Start > (ttl + slow).Seconds() {
			broken = append(broken, fmt.Sprintf("an attempt of %s started %.2fs after its run began", l.Layer, l.Start))
		}
	}
	a.note("no attempt starts after its TTL", fmt.Sprintf("%d runs, the latest start after %.2f of its TTL", checked, latest), broken)
}

// storms compares what arrives at the bottom with what customers asked for.
func (a *audit) storms() {
	var asked, bottom []time.Time
	perOrder := map[string]int{}
	for _, l := range a.lines {
		switch {
		case l.What == "order" || l.What == "again":
			asked = append(asked, l.Time.Add(-time.Duration(l.Took*float64(time.Second))))
		case l.What == "try" && l.Layer == "stock.db":
			bottom = append(bottom, l.Time)
			perOrder[l.Ref]++
		}
	}
	slices.SortFunc(asked, time.Time.Compare)
	count := func(list []time.Time, from, to time.Time) int {
		i, _ := slices.BinarySearchFunc(list, from, time.Time.Compare)
		j, _ := slices.BinarySearchFunc(list, to, time.Time.Compare)
		return j - i
	}
	var broken []string
	worst, most := 0.0, 0
	for _, from := range bottom {
		to := from.Add(window)
		n, requests := count(bottom, from, to), count(asked, from.Add(-window), to) // those that still wait, too
		if requests < 20 {
			continue
		}
		worst = max(worst, float64(n)/float64(count(asked, from, to)+1))
		if limit := 1.1*1.1*1.1*1.1*float64(requests) + 4*float64(budget.Burst); float64(n) > limit {
			broken = append(broken, fmt.Sprintf("%d transactions within 10s of %d requests", n, requests))
		}
	}
	for _, n := range perOrder {
		most = max(most, n)
	}
	a.note("no storm at the bottom", fmt.Sprintf("%.2f transactions for each request in the worst 10s, %d for one order", worst, most), broken)
}

// recoveries measures, after each time of faults, how long customers still failed.
func (a *audit) recoveries() {
	s := a.storm
	type slot struct {
		begin, end, bound time.Duration
		names             []string
	}
	var slots []slot
	for _, f := range s.faults {
		if n := len(slots); n > 0 && f.begin < slots[n-1].end+2*time.Second {
			last := &slots[n-1]
			last.begin, last.end = min(last.begin, f.begin), max(last.end, f.end)
			last.bound, last.names = max(last.bound, f.recovery()), append(last.names, f.name())
			continue
		}
		slots = append(slots, slot{f.begin, f.end, f.recovery(), []string{f.name()}})
	}
	type asked struct {
		begin, end time.Duration
		served     bool
	}
	var orders []asked
	for _, l := range a.of("customers") {
		if l.What == "order" || l.What == "again" {
			end := l.Time.Sub(s.began)
			orders = append(orders, asked{end - time.Duration(l.Took*float64(time.Second)), end, l.Status == acknowledged || l.Status == soldOut})
		}
	}
	var broken []string
	var worst time.Duration
	var worstOf []string
	for i, this := range slots {
		until := time.Duration(1 << 62)
		if i+1 < len(slots) {
			until = slots[i+1].begin
		}
		var took time.Duration
		served := 0
		for _, o := range orders {
			if o.begin < this.end || o.end > until {
				continue
			}
			if o.served {
				served++
			} else {
				took = max(took, o.end-this.end)
			}
		}
		if took > worst {
			worst, worstOf = took, this.names
		}
		if took > time.Duration(*slack)*this.bound || served == 0 && until-this.end > time.Duration(*slack)*this.bound {
			broken = append(broken, fmt.Sprintf("%.1fs after %v at %.1fs a request failed; %d were served before the next fault", took.Seconds(), this.names, this.end.Seconds(), served))
		}
	}
	a.note("customers are served again within 5s, 20s after PostgreSQL and lost packets", fmt.Sprintf("the last failure came %.1fs after the end of %v", worst.Seconds(), worstOf), broken)
}

func (f fault) name() string { return string(f.kind) + " " + f.target }

// exports checks the downloads.
func (a *audit) exports() {
	var broken []string
	whole, failed, parts := 0, 0, 0
	for _, l := range a.of("shop") {
		switch {
		case l.What == "export" && l.Err == "":
			whole++
		case l.What == "export" && strings.Contains(l.Err, errNotWhole.Error()):
			broken = append(broken, l.Err)
		case l.What == "export":
			failed++
		case l.Layer == "shop.export body" && l.Status == "succeeded":
			parts++
		}
	}
	if whole == 0 {
		broken = append(broken, "none was whole")
	}
	a.note("a download is whole or fails", fmt.Sprintf("%d whole, %d resumed parts, %d failed", whole, parts, failed), broken)
}

// catalogs checks that broken files were refused and the others put in force.
func (a *audit) catalogs() {
	var broken []string
	loaded, refusals := 0, 0
	for _, l := range a.lines {
		if l.What == "catalog" {
			if l.Err == "" {
				loaded++
			} else {
				refusals++
			}
		}
	}
	bad := 0
	for _, f := range a.storm.faults {
		if f.kind == badCatalog {
			bad++
		}
	}
	if bad > 0 && refusals == 0 {
		broken = append(broken, "no service saw the broken file")
	}
	a.note("a broken catalog changes nothing", fmt.Sprintf("%d times broken: %d refusals, %d loads", bad, refusals, loaded), broken)
}

// verdict fails the test for each invariant that did not hold.
func (a *audit) verdict(t *testing.T) {
	for _, r := range a.results {
		t.Logf("%-75s %s", r.name, r.figure)
		assert.Emptyf(t, r.broken[:min(10, len(r.broken))], "%s (%d)", r.name, len(r.broken))
	}
}
