package jobsui

import (
	"context"
	"net/http"
	"slices"

	"github.com/retrygo/retry/retryjob"
)

// ScheduleAction is a change of a schedule that the page and command retryjobs offer.
type ScheduleAction struct {
	Name  string // "run"
	Label string // "Run now"
	Done  string // "Runs now"
	Short string // the description of its effect, in a line
	// Takes reports whether it is offered for a schedule.
	Takes func(s *Schedule) bool
	// Do changes the schedule with a name.
	Do func(ctx context.Context, a retryjob.Admin, name string) error
}

var scheduleActions = []ScheduleAction{
	{
		"run", "Run now", "Runs now", "Make the next occurrence due at once",
		func(s *Schedule) bool {
			return s.State != "over" && s.State != retryjob.Leased.String() && s.State != retryjob.WaitingRetry.String()
		},
		retryjob.RunSchedule,
	}, {
		"pause", "Pause", "Paused", "Enqueue no occurrence until it is resumed",
		func(s *Schedule) bool { return s.State != "over" && s.State != "paused" },
		retryjob.PauseSchedule,
	}, {
		"resume", "Resume", "Resumed", "Go on with the first occurrence after now",
		func(s *Schedule) bool { return s.State == "paused" },
		retryjob.ResumeSchedule,
	},
}

// ScheduleActions returns the actions: run, pause and resume.
func ScheduleActions() []ScheduleAction { return slices.Clone(scheduleActions) }

func scheduleAction(name string) *ScheduleAction {
	if i := slices.IndexFunc(scheduleActions, func(a ScheduleAction) bool { return a.Name == name }); i >= 0 {
		return &scheduleActions[i]
	}
	return nil
}

// shownSchedule is a row of the table of schedules.
type shownSchedule struct {
	Schedule
	Offered []ScheduleAction
}

// shownSchedules returns the rows, with actions if the request may change something.
func (f frame) shownSchedules(all []Schedule) (shown []shownSchedule) {
	for _, s := range all {
		row := shownSchedule{Schedule: s}
		for _, action := range scheduleActions {
			if len(f.Actions) > 0 && action.Takes(&s) {
				row.Offered = append(row.Offered, action)
			}
		}
		shown = append(shown, row)
	}
	return shown
}

// schedule changes a schedule, and leads back to the list.
func (h *handler) schedule(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		h.refuse(w, r, http.StatusBadRequest, "The form could not be read: it is too long or malformed.", "./")
		return
	}
	action := scheduleAction(r.PostForm.Get("do"))
	if action == nil {
		h.refuse(w, r, http.StatusBadRequest, "The form asks for nothing that this page offers.", "./")
		return
	}
	if err := action.Do(r.Context(), h.Admin, r.PostForm.Get("schedule")); err != nil {
		h.refuse(w, r, http.StatusConflict, "The schedule was not changed: "+h.text(err)+".", "./")
		return
	}
	h.counting.Lock()
	h.counted = overview{} // so that the page shows the change
	h.counting.Unlock()
	http.SetCookie(w, &http.Cookie{Name: flashCookie, Value: action.Name, MaxAge: 60, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	w.Header().Set("Location", "./")
	w.WriteHeader(http.StatusSeeOther)
}
