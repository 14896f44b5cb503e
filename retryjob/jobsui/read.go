package jobsui

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/retrygo/retry/retryjob"
)

const (
	pageRows    = 50               // jobs on a page
	readRows    = 5_000            // jobs that a page may look at
	readTime    = 10 * time.Second // for a page
	searchTime  = time.Second      // for a page of a search
	searchBatch = 200              // jobs that a search reads at once
)

// page is jobs of a list, without their payloads.
type page struct {
	jobs   []retryjob.Info
	looked int
	next   *cursor // where the next page begins; nil at the end of the list
	cut    bool    // by readRows or searchTime: there may be more matches at next
}

// read returns the page of a view.
func (h *handler) read(ctx context.Context, v *view) (page, error) {
	f, limit := v.filter, readTime
	f.PageSize = pageRows + 1
	if v.search != "" {
		f.PageSize, limit = searchBatch, searchTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	var p page
	full := func(i *retryjob.Info, match bool) bool {
		if !match {
			return false
		}
		if len(p.jobs) == pageRows {
			next := cursorOf(&p.jobs[pageRows-1])
			p.next = &next
			return true
		}
		p.jobs = append(p.jobs, *i)
		return false
	}

	// The page begins after a job that changed in the last microsecond before f.Until. What the engine lists of that
	// microsecond before the job has been shown. If the job is no longer there, it is shown again.
	found, after := true, cursor{}
	var again []retryjob.Info
	if len(v.at) > 0 {
		found, after = false, v.at[len(v.at)-1]
		if until := time.UnixMicro(after.micros + 1); f.Until.IsZero() || until.Before(f.Until) {
			f.Until = until
		}
	}
	settle := func() bool {
		found = true
		return slices.ContainsFunc(again, func(i retryjob.Info) bool { return full(&i, true) })
	}
	var last cursor
	for i, err := range h.Admin.List(ctx, f) {
		if err != nil {
			if found && p.looked > 0 && errors.Is(err, context.DeadlineExceeded) {
				p.next, p.cut = &last, true
				return p, nil
			}
			return page{}, err
		}
		match := v.matches(&i)
		i.Payload = nil
		last = cursorOf(&i)
		if !found && last.micros == after.micros {
			if found = last == after; match && len(again) <= pageRows {
				again = append(again, i)
			}
			continue
		}
		p.looked++
		if !found && settle() || full(&i, match) {
			return p, nil
		}
		if p.looked >= readRows || v.search != "" && ctx.Err() != nil {
			p.next, p.cut = &last, true
			return p, nil
		}
	}
	if !found {
		settle()
	}
	return p, nil
}
