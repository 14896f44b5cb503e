package retryriver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/retrygo/retry/retryjob"
)

// AddHandler adds a worker to workers that passes the retryjob.Jobs of a kind to h. It is for programs that also have
// workers of their own; NewSQLite and NewPostgres call it themselves. An attempt counts as lost, for its context and for
// River's rescuer, ten seconds after the AttemptTimeout of its policy; without one, after river.Config.JobTimeout.
//
// AddHandler returns an error for a nil handler, a kind that River would refuse, or a kind that has a worker already.
func (a *Adapter) AddHandler(workers *river.Workers, kind string, h retryjob.Handler) error {
	return a.addHandler(workers, kind, h, 0)
}

// longestKind is the length that River's tables allow.
const longestKind = 127

// addHandler adds a worker. Attempts without an AttemptTimeout count as lost after unlimited; 0 means JobTimeout.
func (a *Adapter) addHandler(workers *river.Workers, kind string, h retryjob.Handler, unlimited time.Duration) (err error) {
	switch {
	case workers == nil:
		return errors.New("retryriver: AddHandler: the river.Workers are nil")
	case h == nil:
		return fmt.Errorf("retryriver: AddHandler: the handler of kind %q is nil", kind)
	case len(kind) < 2 || len(kind) > longestKind:
		return fmt.Errorf("retryriver: AddHandler: kind %.40q has %d bytes: River takes 2 to %d", kind, len(kind), longestKind)
	}
	defer func() {
		if refused := recover(); refused != nil { // River has no other way to report it
			err = fmt.Errorf("retryriver: AddHandler: %v", refused)
		}
	}()
	river.AddWorkerArgs(workers, anyArgs{kind}, &handlerWorker{adapter: a, handler: h, unlimited: unlimited})
	return nil
}

// anyArgs is the args of the jobs of a handler, any JSON.
type anyArgs struct{ kind string }

func (a anyArgs) Kind() string { return a.kind }

func (a anyArgs) UnmarshalJSON([]byte) error { return nil }

// handlerWorker adapts a retryjob.Handler to River.
type handlerWorker struct {
	river.WorkerDefaults[anyArgs]
	adapter   *Adapter
	handler   retryjob.Handler
	unlimited time.Duration
}

// Timeout returns the time after which River treats the attempt as lost. The Stepper's AttemptTimeout ends it earlier,
// with its own cause.
func (w *handlerWorker) Timeout(job *river.Job[anyArgs]) time.Duration {
	var of retryjob.Job
	if m := w.adapter.leaseOf(job.JobRow); m != nil {
		of = m.job
	} else if s, err := w.adapter.load(job.JobRow); err == nil {
		of = s.Job()
	}
	if p, err := w.adapter.options.Policies.Of(&of); err == nil && p.AttemptTimeout > 0 {
		return p.AttemptTimeout + grace
	}
	return w.unlimited
}

func (w *handlerWorker) Work(ctx context.Context, job *river.Job[anyArgs]) error {
	r, ok := ctx.Value(recordKey{}).(*retryjob.Record)
	if !ok {
		return fmt.Errorf("retryriver: kind %q has a worker without the Adapter: %w", job.Kind, errNotInstalled)
	}
	of := r.Job()
	of.Payload = payloadOf(job.EncodedArgs)
	of.Queue, of.Priority, of.Tags = columns(job.JobRow)
	return w.handler(ctx, of)
}

// columns returns the fields of a retryjob.Job that River stores in columns: zero for a column with River's default.
func columns(row *rivertype.JobRow) (queue string, priority int, tags []string) {
	if row.Queue != river.QueueDefault {
		queue = row.Queue
	}
	if row.Priority != river.PriorityDefault {
		priority = row.Priority
	}
	if len(row.Tags) > 0 {
		tags = row.Tags
	}
	return queue, priority, tags
}

// recordKey is the context key of an attempt's record.
type recordKey struct{}

// jobArgs is the args with which a job is inserted. They are its payload. The other fields are for InsertBegin.
type jobArgs struct {
	kind      string
	payload   json.RawMessage
	record    stored // without a JobID if the caller has not chosen one
	uniqueKey []byte
}

// everyState makes a key unique in every state of its job.
const everyState = 0xff

// newArgs returns the args to insert for a job.
func newArgs(j *retryjob.Job) *jobArgs {
	key := randomKey()
	if j.ID != "" {
		key = keyOf(j.ID)
	}
	return &jobArgs{kind: j.Kind, payload: j.Payload, record: stored{Record: retryjob.NewRecord(j, time.Now().UTC())}, uniqueKey: key}
}

// uniqueStates returns the states of a job in which River's index has its key.
func (a *jobArgs) uniqueStates() byte {
	if isRandom(a.uniqueKey) {
		return 0
	}
	return everyState
}

// id returns the ID of the job that was inserted.
func (a *jobArgs) id(inserted *rivertype.JobInsertResult) string {
	if a.record.JobID == "" {
		return generatedID(inserted.Job.ID, a.uniqueKey)
	}
	return a.record.JobID
}

func (a *jobArgs) Kind() string { return a.kind }

// MarshalJSON returns the payload as args. An object is unchanged. Any other value is wrapped in one, since River's
// SQLite driver converts it to a SQL value and loses null, and the digits of a number.
func (a *jobArgs) MarshalJSON() ([]byte, error) {
	payload := bytes.TrimSpace(a.payload)
	if len(payload) == 0 {
		payload = []byte("null")
	}
	if _, wrapped := unwrap(payload); payload[0] == '{' && !wrapped {
		return payload, nil
	}
	return json.Marshal(map[string]json.RawMessage{wrapperKey: payload})
}

// wrapperKey is the only key of the object that wraps a payload.
const wrapperKey = "retryjob"

// payloadOf returns the payload in args, nil if it is null.
func payloadOf(args []byte) json.RawMessage {
	if payload, ok := unwrap(args); ok {
		args = payload
	}
	if string(args) == "null" {
		return nil
	}
	return json.RawMessage(args)
}

// unwrap returns the value under wrapperKey if the object has no other key.
func unwrap(args []byte) (json.RawMessage, bool) {
	if len(args) == 0 || args[0] != '{' {
		return nil, false
	}
	if !bytes.Contains(args, []byte(wrapperKey)) && !bytes.Contains(args, []byte(`\u`)) {
		return nil, false
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(args, &fields); err != nil || len(fields) != 1 {
		return nil, false
	}
	payload, ok := fields[wrapperKey]
	return payload, ok
}
