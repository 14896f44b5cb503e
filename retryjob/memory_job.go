package retryjob

import (
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unique"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

// job is a Job with its Record as an Engine keeps it. It is small, since a million of them may wait: the order of the
// fields leaves no gaps, and 176 bytes are a size class of the allocator. Engine.mu guards all fields, but while an
// attempt is under way, only its worker writes the fields that record reads: first, replays, attempts, since, last and
// earlier.
type job struct {
	id          string
	route       unique.Handle[route]
	payload     string
	correlation string
	next        *job    // in the line of its lane
	changed     uint64  // the number of its last change among the changes of all jobs; 0 once it is removed
	attempt     *live   // the context of the attempt under way; nil between attempts
	enqueued    instant // or replayed
	first       instant
	at          instant  // when it is due, was leased or ended, depending on its status
	last        ended    // the last attempt; its number is 0 without one
	earlier     *earlier // the attempts and lives before it; nil without them
	attempts    uint32   // the number that have ended
	since       uint32
	replays     int32
	status      Status // 0 before it is stored and once it is removed
	reason      retry.Reason
	priority    uint8 // 0 to 3; 0 starts first
}

// earlier has the fields that few jobs need: the attempts before the last one, the lives before the last replay, Record.Prev and
// Record.PutOff.
type earlier struct {
	attempts []ended
	lives    []Life
	prev     time.Duration
	putOff   int
}

// route has the fields that many jobs have in common, so that an engine keeps them once.
type route struct {
	kind          *kind
	lane          *lane
	policy        string
	spec          *retryconf.Spec
	ttl           time.Duration
	budget, queue string
	priority      int
	tags          string // with commas between them
}

// kind is a Job.Kind with its handler.
type kind struct {
	name    string
	handler Handler
	recent  atomic.Pointer[unique.Handle[route]]
}

// route returns the route of a job of kind k, which for most jobs is the same as for the job before.
func (k *kind) route(e *Engine, j *Job) unique.Handle[route] {
	r := route{kind: k, lane: e.lanes[j.Queue], policy: j.Policy, ttl: j.TTL, budget: j.BudgetKey, queue: j.Queue, priority: j.Priority}
	if r.lane == nil {
		r.lane = e.lanes[""]
	}
	if j.Spec != nil {
		spec := *j.Spec
		spec.Delays = slices.Clone(spec.Delays)
		r.spec = &spec
	}
	r.tags = strings.Join(j.Tags, ",")
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
	return strings.Split(r.tags, ",")
}

// ended is a compact Attempt.
type ended struct {
	start, end, due instant
	text            string // the code, then the error
	number          uint32
	code            uint16 // the length of the code, and the bit inDoubt
	status          Status
	reason          retry.Reason
}

// inDoubt is Attempt.Ambiguous.
const inDoubt = 1 << 15

// split returns the code and the error.
func (a *ended) split() (code, err string) {
	n := a.code &^ inDoubt
	return a.text[:n], a.text[n:]
}

func (j *job) waits() bool { return j.status == Pending || j.status == WaitingRetry }

// record sets rec to the Record of j without Status, Reason, Due and Ended, which Cancel changes during an attempt. It
// appends to rec.History.
func (j *job) record(rec *Record, c clock) {
	r := j.route.Value()
	*rec = Record{
		Version:     RecordVersion,
		JobID:       j.id,
		Kind:        r.kind.name,
		Policy:      r.policy,
		Correlation: j.correlation,
		Spec:        r.spec,
		TTL:         r.ttl,
		BudgetKey:   r.budget,
		FirstDue:    c.time(j.first),
		Replays:     int(j.replays),
		Attempts:    int(j.attempts),
		Forgiven:    int(j.since),
		History:     rec.History,
	}
	if j.enqueued != j.first {
		rec.Enqueued = c.time(j.enqueued)
	}
	add := func(a *ended) {
		code, err := a.split()
		rec.History = append(rec.History, Attempt{
			ID: rec.AttemptID(int(a.number)), Number: int(a.number), Start: c.time(a.start), End: c.time(a.end), Due: c.time(a.due),
			Status: a.status, Reason: a.reason, Err: err, Code: code, Ambiguous: a.code&inDoubt != 0,
		})
	}
	if j.earlier != nil {
		rec.Earlier = j.earlier.lives
		rec.Prev = j.earlier.prev
		rec.PutOff = j.earlier.putOff
		for i := range j.earlier.attempts {
			add(&j.earlier.attempts[i])
		}
	}
	if j.last.number > 0 {
		add(&j.last)
	}
}

// snapshot sets rec to the complete Record of j, including the attempt under way.
func (j *job) snapshot(rec *Record, c clock) {
	j.record(rec, c)
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

func (j *job) info(i *Info, c clock) {
	r := j.route.Value()
	j.snapshot(&i.Record, c)
	i.Queue = r.queue
	i.Priority = r.priority
	i.Tags = r.tagList()
	i.Payload = append(json.RawMessage(nil), j.payload...)
}

// keep sets the fields of j from rec, except for the status.
func (j *job) keep(rec *Record, c clock) {
	if int32(rec.Replays) != j.replays {
		j.enqueued = c.instant(rec.FirstDue)
	}
	j.first = c.instant(rec.FirstDue)
	j.replays = int32(rec.Replays)
	j.since = uint32(rec.Forgiven)
	j.reason = rec.Reason
	if rec.Attempts == 0 {
		j.attempts = 0
		j.last = ended{}
		j.earlier = nil
	}
	rare := len(rec.Earlier) > 0 || rec.Prev != 0 || rec.PutOff != 0
	if j.earlier == nil && rare {
		j.earlier = new(earlier)
	}
	if j.earlier != nil {
		j.earlier.lives = rec.Earlier
		j.earlier.prev = rec.Prev
		j.earlier.putOff = rec.PutOff
	}
	j.note(rec, c)
	j.at = c.instant(rec.Due)
	if rec.Status.Final() {
		j.at = c.instant(rec.Ended)
	}
}

// note adds the last attempt of rec if it is new. It keeps as many attempts as Record.note.
func (j *job) note(rec *Record, c clock) {
	if len(rec.History) == 0 {
		return
	}
	a := &rec.History[len(rec.History)-1]
	if a.Number <= int(j.attempts) {
		return
	}
	j.attempts = uint32(rec.Attempts)
	if j.last.number > 0 {
		if j.earlier == nil {
			j.earlier = new(earlier)
		} else if len(j.earlier.attempts) == keptAttempts-1 {
			j.earlier.attempts = slices.Delete(j.earlier.attempts, 1, 2)
		}
		j.earlier.attempts = append(j.earlier.attempts, j.last)
	}
	j.last = ended{
		start: c.instant(a.Start), end: c.instant(a.End), due: c.instant(a.Due),
		text: a.Code + a.Err, code: uint16(len(a.Code)), number: uint32(a.Number), status: a.Status, reason: a.Reason,
	}
	if a.Ambiguous {
		j.last.code |= inDoubt
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
