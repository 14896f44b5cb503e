package jobsui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

const (
	maxIDs    = 500   // jobs of one selection
	batchRows = 1_000 // jobs that one request changes of all that match
)

// Action is a change of jobs that the page and command retryjobs offer.
type Action struct {
	Name    string // "replay"
	Done    string // "Replayed"
	Short   string // the description of its effect, in a line
	Warning string // read by a person before the action
	// Takes reports whether it accepts jobs with a status.
	Takes func(retryjob.Status) bool
	// One changes the job with an ID. That of replay returns retryjob.ErrInDoubt for a job in doubt: see WithDoubt.
	One func(a retryjob.Admin, ctx context.Context, id string) error
	// All changes up to f.Limit of the jobs that f selects, and returns their number. That of replay leaves out
	// jobs in doubt.
	All func(a retryjob.Admin, ctx context.Context, f retryjob.Filter) (int, error)
}

var actions = []Action{
	{
		"replay", "Replayed", "Make jobs that were given up due again, with no attempts made",
		"A replayed job is due at once, with the same ID and no attempts made.",
		retryjob.Status.Replayable, replayOne, replayAll,
	}, {
		"cancel", "Canceled", "Cancel jobs that have not ended: they make no more attempts",
		"A canceled job makes no more attempts and cannot be replayed.",
		func(s retryjob.Status) bool { return !s.Final() }, retryjob.Admin.Cancel, cancelAll,
	}, {
		"purge", "Purged", "Remove jobs that have ended",
		"A purged job is removed with its record. This cannot be undone.",
		retryjob.Status.Final, purgeOne, retryjob.Admin.Purge,
	},
}

// replayOne replays the job with an ID, or returns retryjob.ErrInDoubt if it is in doubt.
func replayOne(a retryjob.Admin, ctx context.Context, id string) error {
	i, err := a.Get(ctx, id)
	switch {
	case err != nil:
		return err
	case i.InDoubt():
		return retryjob.ErrInDoubt
	}
	return a.Replay(ctx, id)
}

// replayAll replays jobs that are not in doubt, whatever f says about doubt.
func replayAll(a retryjob.Admin, ctx context.Context, f retryjob.Filter) (int, error) {
	if f.InDoubt == retryjob.OnlyInDoubt {
		return 0, nil
	}
	f.InDoubt = retryjob.NotInDoubt
	return a.ReplayAll(ctx, f)
}

// WithDoubt returns an action that replays jobs in doubt too. It returns any other action unchanged.
func (a Action) WithDoubt() Action {
	if a.Name == "replay" {
		a.One = retryjob.Admin.Replay
		a.All = func(admin retryjob.Admin, ctx context.Context, f retryjob.Filter) (int, error) {
			f.InDoubt = cmp.Or(f.InDoubt, retryjob.InDoubtToo)
			return admin.ReplayAll(ctx, f)
		}
	}
	return a
}

func purgeOne(a retryjob.Admin, ctx context.Context, id string) error {
	return retryjob.PurgeOne(ctx, a, id)
}

// Actions returns the actions: replay, cancel and purge.
func Actions() []Action { return slices.Clone(actions) }

func actionOf(name string) *Action {
	if i := slices.IndexFunc(actions, func(a Action) bool { return a.Name == name }); i >= 0 {
		return &actions[i]
	}
	return nil
}

// Statuses returns the statuses that the action accepts: all such, or those of chosen if there are any.
func (a *Action) Statuses(chosen []retryjob.Status) []retryjob.Status {
	return slices.DeleteFunc(retryjob.Statuses(), func(s retryjob.Status) bool {
		return !a.Takes(s) || len(chosen) > 0 && !slices.Contains(chosen, s)
	})
}

// cancelAll cancels up to f.Limit of the jobs that f selects.
func cancelAll(admin retryjob.Admin, ctx context.Context, f retryjob.Filter) (n int, err error) {
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

// order is the request of a form.
type order struct {
	*Action
	IDs   []string
	Every bool // that View selects
	View  *view
	From  string // "job" if the form is on the page of a job, the only one of IDs
	Back  string // the address of the page with the form
	Made  int    // jobs changed by the batches before this one
	Doubt bool   // replay jobs in doubt too
	// Before is the time at which an order for all jobs was first shown. The order excludes jobs that change later,
	// such as a replayed job that fails again. Zero means any time.
	Before time.Time
}

// parseOrder returns the order of the form of r, or responds with the refusal.
func (h *handler) parseOrder(w http.ResponseWriter, r *http.Request) (*order, bool) {
	if err := r.ParseForm(); err != nil {
		h.refuse(w, r, http.StatusBadRequest, "The form could not be read: it is too long or malformed.", "./")
		return nil, false
	}
	query, err := url.ParseQuery(r.PostForm.Get("view"))
	o := &order{
		Action: actionOf(r.PostForm.Get("do")), IDs: r.PostForm["id"], Every: r.Form.Has("all"),
		View: parseView(query, time.Now()), From: r.PostForm.Get("from"),
	}
	if o.Action != nil && r.PostForm.Has("doubt") {
		sure := o.WithDoubt()
		o.Action, o.Doubt = &sure, true
	}
	o.Made, _ = strconv.Atoi(r.PostForm.Get("made")) // it is only shown
	o.Before, _ = time.Parse(time.RFC3339Nano, r.PostForm.Get("before"))
	o.Back = list(o.View.values)
	if len(o.IDs) != 1 || o.Every {
		o.From = ""
	} else if o.From == "job" {
		o.Back = jobAddress(o.IDs[0])
	}
	switch {
	case err != nil || len(o.View.Bad) > 0 || o.Action == nil || o.Every && o.View.search != "":
		h.refuse(w, r, http.StatusBadRequest, "The form asks for nothing that this page offers.", "./")
	case !o.Every && len(o.IDs) == 0:
		h.refuse(w, r, http.StatusBadRequest, "No job is selected.", o.Back)
	case len(o.IDs) > maxIDs:
		h.refuse(w, r, http.StatusBadRequest, fmt.Sprintf("More than %d jobs are selected. Use a filter.", maxIDs), o.Back)
	default:
		return o, true
	}
	return nil, false
}

// filter returns the filter of an order for all.
func (o *order) filter() retryjob.Filter {
	f := o.View.filter
	f.Statuses = o.Statuses(f.Statuses)
	if !o.Before.IsZero() && (f.Until.IsZero() || f.Until.After(o.Before)) {
		f.Until = o.Before
	}
	return f
}

// confirmData is the data of confirm.html.
type confirmData struct {
	frame
	*order
	Jobs   string // "3 jobs", "all jobs that match"
	Doubts string // which of them are in doubt, such as "30 of these jobs"; empty if none is
	All    bool   // they all are
	Fails  string // which of the others ended with terminal_error; empty if none did
	Terms  [][2]string
	Table  table
	Others string // how many more jobs there are than those in Table
}

// confirm shows the effect of an action without performing it.
func (h *handler) confirm(w http.ResponseWriter, r *http.Request) {
	o, ok := h.parseOrder(w, r)
	if !ok {
		return
	}
	d := confirmData{frame: h.frame(r), order: o, Jobs: plural(len(o.IDs))}
	counting, cancel := context.WithTimeout(r.Context(), countTime)
	defer cancel()
	f, n := retryjob.Filter{IDs: o.IDs}, len(o.IDs)
	if o.Every {
		o.Before = d.now
		if f = o.filter(); len(f.Statuses) == 0 {
			h.refuse(w, r, http.StatusBadRequest, "No job with this status can be "+strings.ToLower(o.Done)+".", d.Back)
			return
		}
		var err error
		n, err = h.countAll(counting, f)
		if d.Jobs = plural(n); err != nil {
			d.Jobs, n = "all jobs that match", 0
		}
		d.Terms = terms(o)
	}
	if o.Name == "replay" {
		h.warn(counting, &d, f, n)
	}
	p, err := h.read(r.Context(), &view{filter: f})
	if err != nil {
		d.Alert = "The jobs could not be listed: " + h.text(err) + "."
	} else if p.next != nil {
		d.Others = "and more"
		if n > len(p.jobs) {
			d.Others = "and " + number(n-len(p.jobs)) + " more"
		}
	}
	d.Table = table{frame: d.frame, Jobs: p.jobs}
	d.Title = strings.ToUpper(o.Name[:1]) + o.Name[1:] + " " + d.Jobs + "?"
	h.render(w, http.StatusOK, "confirm.html", d)
}

// countAll returns how many jobs f selects, or 0 with an error.
func (h *handler) countAll(ctx context.Context, f retryjob.Filter) (n int, err error) {
	tallies, err := h.Admin.Count(ctx, f)
	if err != nil {
		return 0, err
	}
	for _, tally := range tallies {
		n += tally.Jobs
	}
	return n, nil
}

// warn notes which of the n jobs of a replay are in doubt, and which would probably fail again. f selects the jobs.
func (h *handler) warn(ctx context.Context, d *confirmData, f retryjob.Filter, n int) {
	f.Statuses = d.Statuses(f.Statuses)
	doubts := 0
	var err error
	if f.InDoubt != retryjob.NotInDoubt {
		of := f
		of.InDoubt = retryjob.OnlyInDoubt
		doubts, err = h.countAll(ctx, of)
	}
	if d.Doubts = share(doubts, n); err != nil {
		d.Doubts = "perhaps some of these jobs"
	}
	d.All = doubts > 0 && doubts == n
	if f.InDoubt == retryjob.OnlyInDoubt || len(f.Reasons) > 0 && !slices.Contains(f.Reasons, retry.TerminalError) {
		return
	}
	f.InDoubt, f.Reasons = retryjob.NotInDoubt, []retry.Reason{retry.TerminalError}
	fails, _ := h.countAll(ctx, f)
	d.Fails = share(fails, n)
}

// share returns "this job", "all of these jobs" or "3 of these jobs" for some of n jobs, and "" for none.
func share(some, n int) string {
	switch {
	case some == 0:
		return ""
	case some == n && n == 1:
		return "this job"
	case some == n:
		return "all of these jobs"
	default:
		return number(some) + " of these jobs"
	}
}

// terms returns the description of the jobs of an order for all.
func terms(o *order) [][2]string {
	var statuses []string
	for _, status := range o.filter().Statuses {
		statuses = append(statuses, status.String())
	}
	all := [][2]string{{"status", strings.Join(statuses, ", ")}}
	for _, key := range fields[2:] {
		for _, value := range o.View.values[key] {
			all = append(all, [2]string{key, value})
		}
	}
	return all
}

// resultData is the data of result.html.
type resultData struct {
	frame
	*order
	Jobs     string      // that were changed
	Failures [][2]string // the jobs that it failed for, and why
	More     bool        // another batch is due
	Err      string      // the error that ended a batch
}

// act executes an order.
func (h *handler) act(w http.ResponseWriter, r *http.Request) {
	o, ok := h.parseOrder(w, r)
	if !ok {
		return
	}
	d := resultData{frame: h.frame(r), order: o}
	if o.Name == "purge" {
		o.Back = list(o.View.values)
	}
	n := 0
	if o.Every {
		f := o.filter()
		if f.Limit = batchRows; len(f.Statuses) > 0 {
			var err error
			n, err = o.All(h.Admin, r.Context(), f)
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
			if err := o.One(h.Admin, r.Context(), id); err != nil {
				d.Failures = append(d.Failures, [2]string{id, h.text(err)})
				continue
			}
			n++
		}
	}
	o.Made += n
	if !d.More && d.Err == "" && len(d.Failures) == 0 {
		http.SetCookie(w, &http.Cookie{
			Name: flashCookie, Value: o.Name + "." + strconv.Itoa(o.Made), MaxAge: 60, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		})
		w.Header().Set("Location", o.Back) // relative: http.Redirect would make it absolute without the path of the mount
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	d.Jobs, d.Script = plural(o.Made), true
	d.Title = o.Done + " " + d.Jobs
	h.render(w, http.StatusOK, "result.html", d)
}
