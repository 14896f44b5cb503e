package jobsui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry/retryjob"
)

const (
	maxIDs     = 500              // jobs of one selection
	batchRows  = 1_000            // jobs that one request changes of all that match
	changeTime = 10 * time.Second // for a request that changes jobs
)

// action is a change of jobs.
type action struct {
	Name, Done string // "replay", "Replayed"
	Warning    string // what a person should know before
	takes      func(retryjob.Status) bool
	one        func(context.Context, retryjob.Admin, string) error
	many       func(context.Context, retryjob.Admin, retryjob.Filter) (int, error)
}

var actions = []action{
	{
		"replay", "Replayed", "A replayed job is due at once, with the same ID and no attempts made.", retryjob.Status.Replayable,
		func(ctx context.Context, a retryjob.Admin, id string) error { return a.Replay(ctx, id) },
		func(ctx context.Context, a retryjob.Admin, f retryjob.Filter) (int, error) {
			return a.ReplayAll(ctx, f)
		},
	}, {
		"cancel", "Canceled", "A canceled job makes no more attempts and cannot be replayed.",
		func(s retryjob.Status) bool { return !s.Final() },
		func(ctx context.Context, a retryjob.Admin, id string) error { return a.Cancel(ctx, id) }, cancelAll,
	}, {
		"purge", "Purged", "A purged job is removed with its record. This cannot be undone.", retryjob.Status.Final,
		purgeOne,
		func(ctx context.Context, a retryjob.Admin, f retryjob.Filter) (int, error) { return a.Purge(ctx, f) },
	},
}

func actionOf(name string) *action {
	if i := slices.IndexFunc(actions, func(a action) bool { return a.Name == name }); i >= 0 {
		return &actions[i]
	}
	return nil
}

// statuses returns the statuses that the action accepts and f selects.
func (a *action) statuses(f *retryjob.Filter) []retryjob.Status {
	return slices.DeleteFunc(retryjob.Statuses(), func(s retryjob.Status) bool {
		return !a.takes(s) || len(f.Statuses) > 0 && !slices.Contains(f.Statuses, s)
	})
}

// cancelAll cancels up to f.Limit of the jobs that f selects.
func cancelAll(ctx context.Context, admin retryjob.Admin, f retryjob.Filter) (n int, err error) {
	limit := f.Limit
	f.Limit = 0
	var ids []string // read first: a list and a change at once may want two connections
	for i, err := range admin.List(ctx, f) {
		if err != nil {
			return 0, err
		}
		if ids = append(ids, i.JobID); len(ids) == limit {
			break
		}
	}
	for _, id := range ids {
		if err := admin.Cancel(ctx, id); err == nil {
			n++
		} else if info, again := admin.Get(ctx, id); again == nil && !info.Status.Final() {
			return n, err
		}
	}
	return n, nil
}

// purgeOne purges the job with an ID.
func purgeOne(ctx context.Context, admin retryjob.Admin, id string) error {
	n, err := admin.Purge(ctx, retryjob.Filter{IDs: []string{id}})
	if err != nil || n > 0 {
		return err
	}
	info, err := admin.Get(ctx, id)
	if err != nil {
		return err
	}
	return fmt.Errorf("the job is %s, and only jobs that have ended are purged", info.Status)
}

// order is the request of a form.
type order struct {
	*action
	IDs  []string
	All  bool // that View selects
	View *view
	From string // "job" if the form is on the page of a job, the only one of IDs
	Made int    // jobs changed by the batches before this one
	// Before is the time at which an order for all jobs was first shown. The order excludes jobs that change later,
	// such as a replayed job that fails again. Zero means any time.
	Before time.Time
}

// parseOrder returns the order of the form of r, or responds with the refusal.
func (h *handler) parseOrder(w http.ResponseWriter, r *http.Request) (*order, bool) {
	if err := r.ParseForm(); err != nil {
		h.refuse(w, http.StatusBadRequest, "The form could not be read: it is too long or malformed.", "./")
		return nil, false
	}
	query, err := url.ParseQuery(r.PostForm.Get("view"))
	o := &order{
		action: actionOf(r.PostForm.Get("do")), IDs: r.PostForm["id"], All: r.Form.Has("all"),
		View: parseView(query, time.Now()), From: r.PostForm.Get("from"),
	}
	o.Made, _ = strconv.Atoi(r.PostForm.Get("made")) // it is only shown
	o.Before, _ = time.Parse(time.RFC3339Nano, r.PostForm.Get("before"))
	if len(o.IDs) != 1 || o.All {
		o.From = ""
	}
	back := list(o.View.values)
	switch {
	case err != nil || len(o.View.bad) > 0 || o.action == nil || o.All && o.View.search != "":
		h.refuse(w, http.StatusBadRequest, "The form asks for nothing that this page offers.", "./")
	case !o.All && len(o.IDs) == 0:
		h.refuse(w, http.StatusBadRequest, "No job is selected.", back)
	case len(o.IDs) > maxIDs:
		h.refuse(w, http.StatusBadRequest, fmt.Sprintf("More than %d jobs are selected. Use a filter.", maxIDs), back)
	default:
		return o, true
	}
	return nil, false
}

// Action returns the action's name in a form.
func (o *order) Action() string { return o.action.Name }

// BeforeText returns Before in a form.
func (o *order) BeforeText() string { return o.Before.UTC().Format(time.RFC3339Nano) }

// filter returns the filter of an order for all.
func (o *order) filter() retryjob.Filter {
	f := o.View.filter
	f.Statuses = o.statuses(&f)
	if !o.Before.IsZero() && (f.Until.IsZero() || f.Until.After(o.Before)) {
		f.Until = o.Before
	}
	return f
}

// confirmData is what confirm.html shows.
type confirmData struct {
	frame
	*order
	Jobs  string // "3 jobs", "more than 100 jobs"
	Query string // of the view, encoded
	Back  string
	Terms [][2]string
}

// confirm shows what an action would do, and does nothing.
func (h *handler) confirm(w http.ResponseWriter, r *http.Request) {
	o, ok := h.parseOrder(w, r)
	if !ok {
		return
	}
	d := confirmData{frame: h.frame(), order: o, Jobs: plural(len(o.IDs)), Back: list(o.View.values)}
	if o.From == "job" {
		d.Back = jobAddress(o.IDs[0])
	}
	if o.All {
		o.Before = d.now
		f := o.filter()
		if len(f.Statuses) == 0 {
			h.refuse(w, http.StatusBadRequest, "No job with this status can be "+strings.ToLower(o.Done)+".", d.Back)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), countTime)
		defer cancel()
		if n, err := h.tally(ctx, f); err != nil {
			d.Jobs = "all jobs that match"
		} else {
			d.Jobs = plural(n[0])
		}
		d.Terms = terms(o)
	}
	d.Query = o.View.values.Encode()
	d.Title = strings.ToUpper(o.Name[:1]) + o.Name[1:] + " " + d.Jobs + "?"
	h.render(w, http.StatusOK, "confirm.html", d)
}

// terms returns the description of the jobs of an order for all.
func terms(o *order) [][2]string {
	f := o.filter()
	all := [][2]string{{"status", texts(f.Statuses)}}
	for _, key := range keys[2:7] {
		for _, value := range o.View.values[key] {
			all = append(all, [2]string{key, value})
		}
	}
	return all
}

// failure is a job that an action failed for.
type failure struct{ ID, Err string }

// resultData is what result.html shows.
type resultData struct {
	frame
	*order
	Query, Back string
	Jobs        string // that were changed
	Failures    []failure
	More        bool   // another batch is due
	Err         string // what ended a batch
}

// act executes an order. Changes made before r's context ends remain.
func (h *handler) act(w http.ResponseWriter, r *http.Request) {
	o, ok := h.parseOrder(w, r)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), changeTime)
	defer cancel()
	d := resultData{frame: h.frame(), order: o, Query: o.View.values.Encode(), Back: list(o.View.values)}
	n := 0
	if o.All {
		f := o.filter()
		if f.Limit = batchRows; len(f.Statuses) > 0 {
			var err error
			n, err = o.many(ctx, h.Admin, f)
			switch {
			case err == nil:
				d.More = n == batchRows
			case errors.Is(err, context.DeadlineExceeded) && n > 0:
				d.More = true
			default:
				d.Err = h.text(err)
			}
		}
	} else {
		for _, id := range o.IDs {
			if err := o.one(ctx, h.Admin, id); err != nil {
				d.Failures = append(d.Failures, failure{id, h.text(err)})
				continue
			}
			n++
		}
	}
	o.Made += n
	if !d.More && d.Err == "" && len(d.Failures) == 0 {
		done := url.Values{"done": {o.Name}, "n": {strconv.Itoa(o.Made)}}
		to := "./?" + values(o.View.values, done).Encode()
		if o.From == "job" && o.Name != "purge" {
			to = jobAddress(o.IDs[0]) + "&" + done.Encode()
		}
		w.Header().Set("Location", to) // relative: http.Redirect would make it absolute without the path of the mount
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	d.Jobs, d.Script = plural(o.Made), true
	d.Title = o.Done + " " + d.Jobs
	h.render(w, http.StatusOK, "result.html", d)
}

// values returns the union of two sets of values.
func values(a, b url.Values) url.Values {
	all := url.Values{}
	for _, from := range []url.Values{a, b} {
		for key, of := range from {
			all[key] = of
		}
	}
	return all
}
