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

// job is a Job with its Record as an Engine holds it: small, since a million of them may wait. Its order of fields
// leaves no gaps, and 208 bytes are a size class of the allocator. Its shard's mutex guards it, but for next and
// queued, which its lane's guards. While an attempt is under way, its worker alone writes what the Record of the
// attempt is made of: first, prev, replays, attempts, since, history and last.
type job struct {
	// What the lists need, together in a cache line: most jobs that are removed are far from any.
	newer, older *job    // with its status in its shard, as List has them
	next         *job    // in the line of its lane, or free in its shard
	changed      uint64  // its place among the changes of all jobs; 0 once it is removed
	attempt      *live   // of the attempt under way; nil if none is
	at           instant // when it is due, was leased or has ended, as its status is
	attempts     uint32  // that have ended
	since        uint32
	replays      int32
	status       Status // 0 once it is removed
	reason       retry.Reason
	priority     uint8  // 0 to 3, the first one first
	queued       bool   // it is in its lane, and is to start from there
	place        uint64 // the number in its ID if that was made up here, or else a hash of the ID and named

	id          string
	route       unique.Handle[route]
	payload     string
	correlation string
	enqueued    instant // or replayed
	first       instant
	prev        time.Duration
	last        ended    // attempt; its number is 0 if there is none
	earlier     *[]ended // the attempts before it; nil if there are none
}

// route is what many jobs have in common, so that it is kept once.
type route struct {
	kind          *kind
	lane          *lane
	policy        string
	spec          *retryconf.Spec
	ttl           time.Duration
	budget, queue string
	priority      int
	tags          string // with a comma after each
}

// kind is what an engine has for a Job.Kind.
type kind struct {
	name    string
	handler Handler
	recent  atomic.Pointer[unique.Handle[route]]
}

// route returns the route of a job of kind k. Most are that of the job before.
func (k *kind) route(e *Engine, j *Job) unique.Handle[route] {
	r := route{kind: k, lane: e.lanes[j.Queue], policy: j.Policy, ttl: j.TTL, budget: j.Budget, queue: j.Queue, priority: j.Priority}
	if r.lane == nil {
		r.lane = e.lanes[""]
	}
	if j.Spec != nil {
		spec := *j.Spec
		spec.Delays = slices.Clone(spec.Delays)
		r.spec = &spec
	}
	for _, tag := range j.Tags {
		r.tags += tag + ","
	}
	if recent := k.recent.Load(); recent != nil && recent.Value() == r {
		return *recent
	}
	made := unique.Make(r)
	k.recent.Store(&made)
	return made
}

func (r *route) tagList() []string {
	if r.tags == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(r.tags, ","), ",")
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

func (j *job) waits() bool { return j.status == Pending || j.status == WaitingRetry }

// payloadOf returns the payload, "" for null.
func payloadOf(j *Job) string {
	if string(bytes.TrimSpace(j.Payload)) == "null" {
		return ""
	}
	return string(j.Payload)
}

// record makes rec the Record of j as far as no attempt under way and no Cancel changes it: without Status, Reason, Due
// and Ended. It appends to its History, with the IDs of attempts if they are wanted.
func (j *job) record(rec *Record, c clock, ids bool) {
	r := j.route.Value()
	*rec = Record{History: rec.History}
	rec.Version, rec.JobID, rec.Kind, rec.Policy, rec.Correlation = RecordVersion, j.id, r.kind.name, r.policy, j.correlation
	rec.Spec, rec.TTL, rec.Budget = r.spec, r.ttl, r.budget
	rec.First, rec.Replays, rec.Attempts = c.time(j.first), int(j.replays), int(j.attempts)
	rec.Since, rec.Prev = int(j.since), j.prev
	if j.enqueued != j.first {
		rec.Enqueued = c.time(j.enqueued)
	}
	add := func(a *ended) {
		id := ""
		if ids {
			id = rec.AttemptID(int(a.number))
		}
		rec.History = append(rec.History, Attempt{
			ID: id, Number: int(a.number), Start: c.time(a.start), End: c.time(a.end), Due: c.time(a.due),
			Status: a.status, Reason: a.reason, Err: a.text[a.code:], Code: a.text[:a.code],
		})
	}
	if j.earlier != nil {
		for i := range *j.earlier {
			add(&(*j.earlier)[i])
		}
	}
	if j.last.number > 0 {
		add(&j.last)
	}
}

// snapshot makes rec the whole Record of j, with the attempt under way.
func (j *job) snapshot(rec *Record, c clock) {
	j.record(rec, c, true)
	rec.Status, rec.Reason = j.status, j.reason
	switch {
	case j.status.Final():
		rec.Ended = c.time(j.at)
	case j.status != Leased:
		rec.Due = c.time(j.at)
	}
	if j.attempt != nil {
		n := rec.Attempts + 1
		rec.note(Attempt{ID: rec.AttemptID(n), Number: n, Start: c.time(j.attempt.start), Status: Leased})
	}
}

// room is where the Histories of many jobs are allocated together.
type room []Attempt

// take returns an empty History with room for the attempts of j.
func (r *room) take(j *job) []Attempt {
	n := int(j.attempts)
	if j.attempt != nil {
		n++
	}
	if n = min(n, keptAttempts); n == 0 {
		return nil
	} else if n > len(*r) {
		*r = make(room, 64)
	}
	history := (*r)[:0:n]
	*r = (*r)[n:]
	return history
}

func (j *job) info(i *Info, c clock) {
	r := j.route.Value()
	j.snapshot(&i.Record, c)
	i.Queue, i.Priority, i.Tags, i.Payload = r.queue, r.priority, r.tagList(), append(json.RawMessage(nil), j.payload...)
}

// keep takes over what rec says, but for the status.
func (j *job) keep(rec *Record, c clock) {
	if int32(rec.Replays) != j.replays {
		j.enqueued = c.instant(rec.First)
	}
	j.first, j.replays, j.prev, j.reason = c.instant(rec.First), int32(rec.Replays), rec.Prev, rec.Reason
	j.since = uint32(rec.Since)
	if rec.Attempts == 0 {
		j.attempts, j.last, j.earlier = 0, ended{}, nil
	}
	j.note(rec, c)
	j.at = c.instant(rec.Due)
	if rec.Status.Final() {
		j.at = c.instant(rec.Ended)
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
		if j.earlier == nil {
			j.earlier = new([]ended)
		} else if len(*j.earlier) == keptAttempts-1 {
			*j.earlier = slices.Delete(*j.earlier, 1, 2)
		}
		*j.earlier = append(*j.earlier, j.last)
	}
	j.last = ended{
		start: c.instant(a.Start), end: c.instant(a.End), due: c.instant(a.Due),
		text: a.Code + a.Err, code: uint16(len(a.Code)), number: uint32(a.Number), status: a.Status, reason: a.Reason,
	}
}

// changedAt is Record.Changed.
func (j *job) changedAt() instant {
	switch {
	case j.status.Final():
		return j.at
	case j.attempt != nil:
		return j.attempt.start
	case j.last.number > 0:
		return j.last.end
	default:
		return j.enqueued
	}
}
