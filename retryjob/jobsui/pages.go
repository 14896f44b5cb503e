package jobsui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"stamp":  stamp,
	"number": number,
	"shown":  Escape,
	"err":    func(text string) string { return Escape(RedactText(text)) },
	"job":    jobAddress,
	"took":   duration,
}).ParseFS(assets, "assets/*.html"))

// frame is the data of every page.
type frame struct {
	Title, Name  string
	Flash, Alert string
	Live, Stop   string // the address that makes the page live, or stops that; empty on a page that does not change
	Script       bool
	now          time.Time
	Actions      []Action // that the request may do
}

func (h *handler) frame(r *http.Request) frame {
	f := frame{Name: h.Name, now: time.Now()}
	if r.Context().Value(accessKey{}) == ReadWrite {
		f.Actions = actions
	}
	return f
}

// offered returns the actions that accept a job which ok says.
func (f frame) offered(ok func(*Action) bool) []Action {
	return slices.DeleteFunc(slices.Clone(f.Actions), func(a Action) bool { return !ok(&a) })
}

// Ago returns the distance of a time from now.
func (f frame) Ago(at time.Time) string { return Ago(at, f.now) }

// render answers with a page.
func (h *handler) render(w http.ResponseWriter, status int, name string, data any) {
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name, data); err != nil {
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

// refuse answers with a page that says why, and leads back.
func (h *handler) refuse(w http.ResponseWriter, r *http.Request, status int, why, back string) {
	f := h.frame(r)
	f.Title, f.Alert = "Not done", why
	h.render(w, status, "refusal.html", struct {
		frame
		Back string
	}{f, back})
}

// flashCookie has the result of the request before this one. It is not in the address, which anyone could write.
const flashCookie = "jobsui-done"

// flash returns the result of the last request, once.
func flash(w http.ResponseWriter, r *http.Request) string {
	cookie, err := r.Cookie(flashCookie)
	if err != nil {
		return ""
	}
	http.SetCookie(w, &http.Cookie{Name: flashCookie, MaxAge: -1})
	if a := scheduleAction(cookie.Value); a != nil {
		return a.Done + "."
	}
	name, count, _ := strings.Cut(cookie.Value, ".")
	n, err := strconv.Atoi(count)
	if a := actionOf(name); a != nil && err == nil && n >= 0 {
		return a.Done + " " + plural(n) + "."
	}
	return ""
}

// listData is the data of list.html.
type listData struct {
	frame
	*view
	Tabs       []tab
	Chosen     map[string]string // the value of each field
	Others     [][2]string       // further values of the fields
	Reasons    []retry.Reason
	Exact      string // the address of the search for texts, if the only job is the one with the ID that is searched
	Table      table
	Failures   []failures
	Kinds      int // of failures, if there are more
	Letters    int // the number of dead letters, and of those that are in doubt
	Doubts     int
	Now        *overview
	Due        int // the number of jobs that wait for a worker, and of attempts under way
	Running    int
	Chart      *chart
	Schedules  []shownSchedule
	Overdue    int // of Schedules
	Folded     int // jobs that are left out, and the address of the list with them
	Unfold     string
	MoreFields bool // a field other than the search has a value
	Looked     int
	Cut        bool
	Failed     string // why there is no list
	Newest     string
	Older      string
	Clear      string
	Offered    []Action // for all that match
}

// table is a table of jobs.
type table struct {
	frame
	Jobs  []retryjob.Info
	Boxes bool // to select jobs
}

// failures is jobs that failed in the same way, and how they are selected.
type failures struct {
	retryjob.Failures
	Address string
	Query   string   // of the address
	Replay  bool     // the request may replay them
	Notes   []string // what to know before a replay
}

// tab is a link to the jobs of a status, or to all.
type tab struct {
	Text, Number, Address string
	Current               bool
	Status                retryjob.Status
}

// list answers with a page of jobs.
func (h *handler) list(w http.ResponseWriter, r *http.Request) {
	d := listData{frame: h.frame(r), Chosen: map[string]string{}, Reasons: retryjob.Reasons()}
	v := parseView(r.URL.Query(), d.now)
	d.view, d.Flash, d.Script, d.Title = v, flash(w, r), true, "Jobs"
	d.Clear = list(url.Values{"status": v.values["status"], "live": v.values["live"]})
	for _, key := range fields {
		d.Chosen[key] = v.values.Get(key)
		d.MoreFields = d.MoreFields || key != "q" && key != "status" && d.Chosen[key] != ""
		for i, value := range v.values[key] {
			if i > 0 || key == "status" {
				d.Others = append(d.Others, [2]string{key, value})
			}
		}
	}
	if d.Live = v.with("live", "1"); v.values.Has("live") {
		d.Live, d.Stop = "", v.with("live", "")
	}
	h.count(r.Context(), &d)
	status := http.StatusOK
	if len(v.Bad) > 0 {
		status, d.Failed = http.StatusBadRequest, "The filter is not understood, so no job is shown."
		h.render(w, status, "list.html", d)
		return
	}
	p, err := page{}, error(nil)
	if q := v.values.Get("q"); q != "" && !v.values.Has("text") {
		if info, err := h.Admin.Get(r.Context(), q); err == nil {
			d.Exact, p.jobs = v.with("text", "1"), []retryjob.Info{info}
		}
	}
	if d.Exact == "" {
		p, err = h.read(r.Context(), v)
	}
	if err != nil {
		status, d.Failed = http.StatusServiceUnavailable, "The jobs could not be listed: "+h.text(err)+"."
	}
	d.Table, d.Looked, d.Cut = table{d.frame, p.jobs, len(d.Actions) > 0}, p.looked, p.cut
	d.Folded, d.Unfold = p.folded, v.with("routine", "1")
	if p.next != nil {
		d.Older = v.with("at", cursorText(*p.next))
	}
	if v.values.Has("at") {
		d.Newest = v.with("at", "")
	}
	if v.search == "" && len(p.jobs) > 0 {
		d.Offered = d.offered(func(a *Action) bool { return len(a.Statuses(v.filter.Statuses)) > 0 })
	}
	h.render(w, status, "list.html", d)
}

const shownFailures = 5 // kinds of errors

// count adds the figures of all jobs to a list.
func (h *handler) count(ctx context.Context, d *listData) {
	o := h.overview(ctx)
	number := func(n int) string {
		if o.err != nil {
			return ""
		}
		return number(n)
	}
	chosen := d.view.filter.Statuses
	d.Tabs = []tab{{Text: "all", Number: number(o.Jobs), Address: d.with("status", ""), Current: len(chosen) == 0}}
	for _, s := range retryjob.Statuses() {
		d.Tabs = append(d.Tabs, tab{s.String(), number(o.ByStatus[s]), d.with("status", s.String()), slices.Contains(chosen, s), s})
	}
	if o.err != nil {
		d.Alert = "The jobs could not be counted: " + h.text(o.err) + "."
		return
	}
	d.Now, d.Chart, d.Schedules = &o, chartOf(&o.Summary), d.shownSchedules(o.Schedules)
	for _, s := range o.Schedules {
		if s.Overdue > 0 {
			d.Overdue++
		}
	}
	for _, q := range o.Queues {
		d.Due += q.Due
		d.Running += q.Running
	}
	for _, f := range o.DeadLetters {
		d.Letters += f.Jobs
		d.Doubts += f.InDoubt
	}
	for _, f := range o.DeadLetters[:min(len(o.DeadLetters), shownFailures)] {
		same := url.Values{"status": {retryjob.DeadLettered.String()}, "kind": {f.Kind}}
		if f.Reason != 0 {
			same["reason"] = []string{f.Reason.Error()}
		}
		if f.Cause != "" {
			same["cause"] = []string{f.Cause}
		}
		d.Failures = append(d.Failures, failures{f, list(same), same.Encode(), d.Actions != nil, notes(&f)})
	}
	if len(o.DeadLetters) > shownFailures {
		d.Kinds = len(o.DeadLetters)
	}
}

// notes returns what to know before a replay of these jobs.
func notes(f *retryjob.Failures) (all []string) {
	if f.Reason == retry.TerminalError && f.InDoubt < f.Jobs {
		all = append(all, "a replay fails again unless its cause is mended")
	}
	if f.InDoubt > 0 {
		all = append(all, "in doubt: the work may have been done, so find out before a replay")
	}
	return all
}

// jobData is the data of job.html.
type jobData struct {
	frame
	Info     *retryjob.Info
	Facts    []Fact
	Attempts []Attempt
	Payload  string
	Cut      bool // the payload is longer
	Offered  []Action
}

// Fact is a field of a job as a page or a command shows it, a text or a time.
type Fact struct {
	Name, Text string
	At         time.Time
}

// Facts returns the fields of a job that are set, without its ID, Status, History and Payload.
func Facts(i *retryjob.Info) (facts []Fact) {
	priority, ttl := strings.TrimPrefix(strconv.Itoa(i.Priority), "0"), strings.TrimPrefix(i.TTL.String(), "0s")
	spec, _ := json.Marshal(i.Spec) // of texts and numbers
	doubt := ""
	if i.InDoubt() {
		doubt = "the work may have been done"
	}
	for _, f := range []Fact{
		{Name: "kind", Text: i.Kind}, {Name: "policy", Text: i.Policy}, {Name: "recurring", Text: recurring(i)}, {Name: "correlation", Text: i.Correlation},
		{Name: "queue", Text: i.Queue}, {Name: "priority", Text: priority}, {Name: "tags", Text: strings.Join(i.Tags, ", ")},
		{Name: "reason", Text: i.Reason.Error()}, {Name: "in doubt", Text: doubt}, {Name: "attempts", Text: strconv.Itoa(i.Attempts)}, {Name: "put off", Text: times(i.PutOff)}, {Name: "replays", Text: strconv.Itoa(i.Replays)},
		{Name: "enqueued", At: i.Enqueued}, {Name: "first due", At: i.FirstDue}, {Name: "next due", At: i.Due}, {Name: "ended", At: i.Ended},
		{Name: "ttl", Text: ttl}, {Name: "budget", Text: i.BudgetKey}, {Name: "spec", Text: strings.TrimPrefix(string(spec), "null")},
	} {
		if f.Text != "" || !f.At.IsZero() {
			facts = append(facts, f)
		}
	}
	return facts
}

// shownPayload is how many bytes of a payload are shown and searched.
const shownPayload = 64 << 10

// job answers with the page of a job.
func (h *handler) job(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	id := query.Get("id")
	info, err := h.Admin.Get(r.Context(), id)
	switch {
	case errors.Is(err, retryjob.ErrUnknownJob):
		h.refuse(w, r, http.StatusNotFound, "There is no job "+Escape(id)+": "+h.text(err)+".", "./")
		return
	case err != nil:
		h.refuse(w, r, http.StatusServiceUnavailable, "The job could not be read: "+h.text(err)+".", "./")
		return
	}
	d := jobData{frame: h.frame(r), Info: &info}
	d.Title, d.Flash, d.Script = "Job "+Escape(info.JobID), flash(w, r), true
	d.Live = jobAddress(id) + "&live=1"
	if query.Get("live") != "" {
		d.Live, d.Stop = "", jobAddress(id)
	}
	d.Attempts = Attempts(&info.Record, d.now)
	d.Facts = Facts(&info)
	d.Payload, d.Cut = PayloadText(h.payload(&info)), len(info.Payload) > shownPayload
	d.Offered = d.offered(func(a *Action) bool { return a.Takes(info.Status) })
	h.render(w, http.StatusOK, "job.html", d)
}

// PayloadText returns a payload as it is shown: escaped, and indented if it is JSON of up to 128 KiB that does not grow
// much by its indents.
func PayloadText(payload json.RawMessage) string {
	var b bytes.Buffer
	if len(payload) > 2*shownPayload || json.Indent(&b, payload, "", "  ") != nil || b.Len() > 4*shownPayload {
		return Escape(string(payload))
	}
	return Escape(b.String())
}

// jobAddress returns the relative address of a job's page.
func jobAddress(id string) string { return "job?" + url.Values{"id": {id}}.Encode() }
