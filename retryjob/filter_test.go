package retryjob_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

func TestFilterSelects(t *testing.T) {
	ended := epoch.Add(time.Hour)
	dead := retryjob.Info{Record: retryjob.Record{Kind: "mail",
		Version: retryjob.RecordVersion, JobID: "j", Policy: "p", FirstDue: epoch, Status: retryjob.DeadLettered,
		Reason: retry.TerminalError, Ended: ended, History: []retryjob.Attempt{{Number: 1, Ambiguous: true}},
	}}
	for _, row := range []struct {
		name   string
		filter retryjob.Filter
		want   bool
	}{
		{"the zero Filter selects all", retryjob.Filter{}, true},
		{"its status", retryjob.Filter{Statuses: []retryjob.Status{retryjob.Pending, retryjob.DeadLettered}}, true},
		{"another status", retryjob.Filter{Statuses: []retryjob.Status{retryjob.Pending, retryjob.Expired}}, false},
		{"no status means any", retryjob.Filter{Statuses: []retryjob.Status{}}, true},
		{"its reason", retryjob.Filter{Reasons: []retry.Reason{retry.TTLElapsed, retry.TerminalError}}, true},
		{"another reason", retryjob.Filter{Reasons: []retry.Reason{retry.TTLElapsed}}, false},
		{"no reason means any", retryjob.Filter{Reasons: []retry.Reason{}}, true},
		{"its policy", retryjob.Filter{Policies: []string{"q", "p"}}, true},
		{"another policy", retryjob.Filter{Policies: []string{"q"}}, false},
		{"its kind", retryjob.Filter{Kinds: []string{"mail", "fax"}}, true},
		{"another kind", retryjob.Filter{Kinds: []string{"fax"}}, false},
		{"jobs in doubt", retryjob.Filter{InDoubt: retryjob.OnlyInDoubt}, true},
		{"jobs in doubt too", retryjob.Filter{InDoubt: retryjob.InDoubtToo}, true},
		{"no jobs in doubt", retryjob.Filter{InDoubt: retryjob.NotInDoubt}, false},
		{"as ReplayAll does", retryjob.Filter{Policies: []string{"p"}}.ForReplay(), false},
		{"as ReplayAll does that is asked for doubt", retryjob.Filter{InDoubt: retryjob.OnlyInDoubt}.ForReplay(), true},
		{"since exactly then", retryjob.Filter{Since: ended}, true},
		{"since later", retryjob.Filter{Since: ended.Add(1)}, false},
		{"until later", retryjob.Filter{Until: ended.Add(1)}, true},
		{"until exactly then", retryjob.Filter{Until: ended}, false},
		{"everything that applies", retryjob.Filter{
			Statuses: []retryjob.Status{retryjob.DeadLettered}, Reasons: []retry.Reason{retry.TerminalError},
			Policies: []string{"p"}, Kinds: []string{"mail"}, Since: epoch, Until: ended.Add(1),
		}, true},
		{"one thing that does not", retryjob.Filter{
			Statuses: []retryjob.Status{retryjob.DeadLettered}, Reasons: []retry.Reason{retry.TerminalError},
			Policies: []string{"p"}, Kinds: []string{"fax"}, Since: epoch, Until: ended.Add(1),
		}, false},
		{"Limit does not matter", retryjob.Filter{Limit: -1, PageSize: -1}, true},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, row.filter.Selects(&dead)) })
	}
}

func TestFilterPage(t *testing.T) {
	for size, want := range map[int]int{-1: 100, 0: 100, 1: 1, 100: 100, 5000: 5000} {
		require.Equal(t, want, (&retryjob.Filter{PageSize: size, Limit: 3}).Page())
	}
}
