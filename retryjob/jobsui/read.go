package jobsui

import (
	"context"
	"errors"
	"time"

	"github.com/retrygo/retry/retryjob"
)

const (
	pageRows    = 50          // jobs on a page
	readRows    = 5_000       // jobs that a page may look at
	foldRows    = 1_000       // jobs that a page may look at if it leaves some out
	searchTime  = time.Second // for a page of a search
	searchBatch = 200         // jobs that a search reads at once
)

// page is jobs of a list, without their payloads.
type page struct {
	jobs   []retryjob.Info
	looked int
	folded int              // successes of schedules that are left out
	next   *retryjob.Cursor // where the next page begins; nil at the end of the list
	cut    bool             // by readRows or searchTime: there may be more matches at next
}

// read returns the page of a view.
func (h *handler) read(ctx context.Context, v *view) (page, error) {
	f := v.filter
	f.PageSize = pageRows + 1
	if v.search != "" {
		f.PageSize = searchBatch
		limited, cancel := context.WithTimeout(ctx, searchTime)
		defer cancel()
		ctx = limited
	}
	var p page
	var last retryjob.Cursor
	most, routine := readRows, map[string]bool{}
	if v.folds() {
		most = foldRows
	}
	for i, err := range h.Admin.List(ctx, f) {
		switch {
		case err != nil && p.looked > 0 && errors.Is(err, context.DeadlineExceeded):
			p.next, p.cut = &last, true
			return p, nil
		case err != nil:
			return page{}, err
		}
		match := h.matches(v, &i)
		if name, ok := retryjob.ScheduleOf(i.JobID); ok && i.Status == retryjob.Succeeded && v.folds() {
			if routine[name] {
				match = false
				p.folded++
			}
			routine[name] = true
		}
		if match && len(p.jobs) == pageRows {
			next := p.jobs[pageRows-1].Cursor()
			p.next = &next
			return p, nil
		}
		i.Payload = nil
		if last = i.Cursor(); match {
			p.jobs = append(p.jobs, i)
		}
		if p.looked++; p.looked >= most || v.search != "" && ctx.Err() != nil {
			p.next, p.cut = &last, true
			return p, nil
		}
	}
	return p, nil
}
