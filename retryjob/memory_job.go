package retryjob

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unique"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

// job is a Job with its Record as an Engine holds it: small, since a million of them may wait. Its order of fields leaves
// no gaps, and 224 bytes are a size class of the allocator. Its shard's mutex guards it. While an attempt is under way, its
// worker alone writes what the Record of the attempt is made of: first, prev, replays, attempts, since, history and last.
type job struct {
	// What the lists and the table of its shard need, together in a cache line: most jobs that are removed are far from any.
	link         *job // in a chain of the table
	newer, older *job // with its status in its shard, as List has them
	hash         uint64
	changed      uint64  // its place among the changes of all jobs; 0 once it is removed
	live         *live   // nil unless an attempt is under way or Wait is called
	at           instant // when it is due, was leased or has ended, as its status is
	attempts     uint32  // that have ended
	status       Status  // 0 once it is removed
	reason       retry.Reason
	priority     uint8 // 0 to 3, the first one first
	fresh        bool  // its ID was made up here, and so is no other's

	id          string
	route       unique.Handle[route]
	payload     string
	correlation string
	enqueued    instant // or replayed
	first       instant
	prev        time.Duration
	since       uint32
	replays     int32
	last        ended   // attempt; its number is 0 if there is none
	history     []ended // before it
}

// route is where a job goes. Few routes serve many jobs, so that each is kept once.
type route struct {
	kind   *kind
	lane   *lane
	policy string
	needs  unique.Handle[needs] // zero for none, as nearly all have it
}

// kind is what an engine has for a Job.Kind.
type kind struct {
	name    string
	handler Handler
	recent  atomic.Pointer[known]
}

// known is a route with its handle.
type known struct {
	route
	handle unique.Handle[route]
}

// needs is what a job says of itself beyond that.
type needs struct {
	spec          *retryconf.Spec
	ttl           time.Duration
	budget, queue string
	priority      int
	tags          string // with a comma after each
}

// route returns the route of a job of kind k. Most are that of the job before.
func (k *kind) route(e *Engine, j *Job) unique.Handle[route] {
	n := needs{ttl: j.TTL, budget: j.Budget, queue: j.Queue, priority: j.Priority}
	if j.Spec != nil {
		spec := *j.Spec
		spec.Delays = slices.Clone(spec.Delays)
		n.spec = &spec
	}
	for _, tag := range j.Tags {
		n.tags += tag + ","
	}
	r := route{kind: k, lane: e.lanes[j.Queue], policy: j.Policy}
	if r.lane == nil {
		r.lane = e.lanes[""]
	}
	if n != (needs{}) {
		r.needs = unique.Make(n)
	}
	if recent := k.recent.Load(); recent != nil && recent.route == r {
		return recent.handle
	}
	made := &known{r, unique.Make(r)}
	k.recent.Store(made)
	return made.handle
}

func (r route) get() (n needs) {
	if r.needs != (unique.Handle[needs]{}) {
		n = r.needs.Value()
	}
	return n
}

func (n *needs) list() []string {
	if n.tags == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(n.tags, ","), ",")
}

// ended is an Attempt in short.
type ended struct {
	start, end, due instant
	text            string // the code, then the error
	number          uint32
	code            uint16 // the length of the code
	status          Status
	reason          retry.Reason
}

// newJob returns a copy of j, whose ID it takes as it is, without a status yet.
func newJob(j *Job, r unique.Handle[route]) *job {
	return &job{id: j.ID, route: r, payload: payloadOf(j), correlation: strings.Clone(j.Correlation), priority: uint8(max(j.Priority, 1) - 1)}
}

func (j *job) waits() bool { return j.status == Pending || j.status == WaitingRetry }

// payloadOf returns the payload, "" for null.
func payloadOf(j *Job) string {
	if string(bytes.TrimSpace(j.Payload)) == "null" {
		return ""
	}
	return string(j.Payload)
}

// job returns the job for its handler, but for its Payload.
func (j *job) job(c clock) Job {
	r := j.route.Value()
	n := r.get()
	return Job{
		ID: j.id, Kind: r.kind.name, Policy: r.policy, Correlation: j.correlation, Due: c.time(j.first),
		Spec: n.spec, TTL: n.ttl, Budget: n.budget, Queue: n.queue, Priority: n.priority, Tags: n.list(),
	}
}

func (j *job) payloadCopy() json.RawMessage {
	if j.payload == "" {
		return nil
	}
	return json.RawMessage(j.payload)
}

// record makes rec the Record of j as far as no attempt under way and no Cancel changes it: without Status, Reason, Due and
// Ended. It appends to its History, with the IDs of attempts if they are wanted.
func (j *job) record(rec *Record, c clock, ids bool) {
	r := j.route.Value()
	n := r.get()
	*rec = Record{
		Version: RecordVersion, JobID: j.id, Kind: r.kind.name, Policy: r.policy, Correlation: j.correlation, Spec: n.spec, TTL: n.ttl, Budget: n.budget,
		First: c.time(j.first), Replays: int(j.replays), Attempts: int(j.attempts), Since: int(j.since), Prev: j.prev,
		History: rec.History,
	}
	if j.enqueued != j.first {
		rec.Enqueued = c.time(j.enqueued)
	}
	if j.last.number == 0 {
		return
	}
	for i := range len(j.history) + 1 {
		a := &j.last
		if i < len(j.history) {
			a = &j.history[i]
		}
		id := ""
		if ids {
			id = rec.AttemptID(int(a.number))
		}
		rec.History = append(rec.History, Attempt{
			ID: id, Number: int(a.number), Start: c.time(a.start), End: c.time(a.end), Due: c.time(a.due),
			Status: a.status, Reason: a.reason, Err: a.text[a.code:], Code: a.text[:a.code],
		})
	}
}

// snapshot returns the whole Record of j, with the attempt under way.
func (j *job) snapshot(c clock) Record {
	var rec Record
	if n := len(j.history) + 1; j.last.number > 0 {
		rec.History = make([]Attempt, 0, n)
	}
	j.record(&rec, c, true)
	rec.Status, rec.Reason = j.status, j.reason
	switch {
	case j.status.Final():
		rec.Ended = c.time(j.at)
	case j.status != Leased:
		rec.Due = c.time(j.at)
	}
	if j.underWay() {
		n := rec.Attempts + 1
		rec.note(Attempt{ID: rec.AttemptID(n), Number: n, Start: c.time(j.live.start), Status: Leased})
	}
	return rec
}

func (j *job) info(c clock) Info {
	n := j.route.Value().get()
	return Info{Record: j.snapshot(c), Queue: n.queue, Priority: n.priority, Tags: n.list(), Payload: j.payloadCopy()}
}

// keep takes over what rec says, but for the status.
func (j *job) keep(rec *Record, c clock) {
	if int32(rec.Replays) != j.replays {
		j.enqueued = c.instant(rec.First)
	}
	j.first, j.replays, j.prev, j.reason = c.instant(rec.First), int32(rec.Replays), rec.Prev, rec.Reason
	j.since = uint32(rec.Since)
	if rec.Attempts == 0 {
		j.attempts, j.last, j.history = 0, ended{}, nil
	}
	j.note(rec, c)
	switch {
	case rec.Status.Final():
		j.at = c.instant(rec.Ended)
	default:
		j.at = c.instant(rec.Due)
	}
}

// note takes over the last attempt of rec, if it is new. It keeps as many attempts as Record.note does.
func (j *job) note(rec *Record, c clock) {
	a := rec.Last()
	if a.Number <= int(j.attempts) {
		return
	}
	j.attempts = uint32(rec.Attempts)
	if j.last.number > 0 {
		if len(j.history) == keptAttempts-1 {
			j.history = slices.Delete(j.history, 1, 2)
		}
		j.history = append(j.history, j.last)
	}
	j.last = ended{
		start: c.instant(a.Start), end: c.instant(a.End), due: c.instant(a.Due),
		text: a.Code + a.Err, code: uint16(len(a.Code)), number: uint32(a.Number), status: a.Status, reason: a.Reason,
	}
}

func (j *job) underWay() bool { return j.live != nil && j.live.underWay }

// changedAt is Record.Changed.
func (j *job) changedAt() instant {
	switch {
	case j.status.Final():
		return j.at
	case j.underWay():
		return j.live.start
	case j.last.number > 0:
		return j.last.end
	default:
		return j.enqueued
	}
}

// watch is what the callers of Wait share: the job as it was when it ended, which later changes do not reach.
type watch struct {
	callers int           // that still wait
	done    chan struct{} // closed when end and err are set
	end     Info
	err     error
}

// waitedFor returns the watch of a job that is not final, for one more caller.
func (j *job) waitedFor() *watch {
	if j.live == nil {
		j.live = &live{}
	}
	if j.live.watch == nil {
		j.live.watch = &watch{done: make(chan struct{})}
	}
	j.live.watch.callers++
	return j.live.watch
}

// leave ends a call of Wait for w with err, or with what w has by now. It reports false if an attempt is under way that
// ErrShutdown does not end.
func (j *job) leave(e *Engine, w *watch, err error) (Info, error, bool) {
	defer e.lock(j).mu.Unlock()
	select {
	case <-w.done:
		return w.end, w.err, true
	default:
	}
	if err == ErrShutdown && !j.waits() {
		return Info{}, nil, false
	}
	if w.callers--; w.callers == 0 {
		j.live.watch = nil
		j.rest()
	}
	return j.info(e.clock), err, true
}

// tell ends the watch, if there is one.
func (j *job) tell(c clock, err error) {
	if j.live == nil || j.live.watch == nil {
		return
	}
	w := j.live.watch
	j.live.watch = nil
	w.end, w.err = j.info(c), err
	close(w.done)
	j.rest()
}

// rest drops what the job needs only while something happens about it.
func (j *job) rest() {
	if !j.underWay() && (j.live == nil || j.live.watch == nil) {
		j.live = nil
	}
}
