package jobsui_test

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryjob"
	"github.com/retrygo/retry/retryjob/jobsui"
)

func TestAttempts(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1_800_000_000, 0).Add(time.Duration(s) * time.Second) }
	ended := func(number, start, end, due int) retryjob.Attempt {
		return retryjob.Attempt{Number: number, Start: at(start), End: at(end), Due: at(due), Status: retryjob.WaitingRetry}
	}
	begun := func(number, start int) retryjob.Attempt {
		return retryjob.Attempt{Number: number, Start: at(start), Status: retryjob.WaitingRetry}
	}
	late := ended(1, 0, 90, 0)
	late.Late = true
	last := ended(2, 10, 11, 0)
	last.Due = time.Time{}
	full := []retryjob.Attempt{ended(1, 0, 1, 2)}
	for n := 8; n <= 70; n++ {
		full = append(full, ended(n, n, n, n))
	}
	const lost, dropped = "not in the record: the worker was lost", "no longer in the record"
	for _, row := range []struct {
		name     string
		status   retryjob.Status
		attempts int
		history  []retryjob.Attempt
		want     []string // of the first lines: Number, Took, Wait, Status and Err
	}{
		{"none", retryjob.Pending, 0, nil, nil},
		{"ended", retryjob.DeadLettered, 2, []retryjob.Attempt{ended(1, 0, 3, 10), last}, []string{"1|3s|7s|waiting_retry|", "2|1s||waiting_retry|"}},
		{"no time is negative", retryjob.WaitingRetry, 1, []retryjob.Attempt{ended(1, 5, 3, 1)}, []string{"1|0s|0s|waiting_retry|"}},
		{"late, when its wait was over", retryjob.WaitingRetry, 1, []retryjob.Attempt{late}, []string{"1|1m30s, late||waiting_retry|"}},
		{"under way", retryjob.Leased, 1, []retryjob.Attempt{begun(1, 40)}, []string{"1|1m0s so far||waiting_retry|"}},
		{"under way, by a clock that is ahead", retryjob.Leased, 1, []retryjob.Attempt{begun(1, 140)}, []string{"1|0s so far||waiting_retry|"}},
		{"lost", retryjob.Leased, 2, []retryjob.Attempt{begun(1, 40), begun(2, 60)}, []string{"1|lost, 20s||waiting_retry|", "2|40s so far||waiting_retry|"}},
		{"lost, when is not known", retryjob.WaitingRetry, 5,
			[]retryjob.Attempt{begun(1, 40), begun(3, 60), {Number: 4, Status: retryjob.WaitingRetry}, begun(5, 40)},
			[]string{"1|lost||waiting_retry|", "2||||" + lost, "3|lost||waiting_retry|", "4|lost||waiting_retry|", "5|lost||waiting_retry|"}},
		{"lost at the same time", retryjob.WaitingRetry, 2, []retryjob.Attempt{begun(1, 40), begun(2, 40)}, []string{"1|lost, 0s||waiting_retry|", "2|lost||waiting_retry|"}},
		{"just begun", retryjob.Leased, 2, []retryjob.Attempt{ended(1, 0, 1, 2)}, []string{"1|1s|1s|waiting_retry|", "2|||leased|"}},
		{"just begun after lost ones", retryjob.Leased, 3, nil, []string{"1-2||||" + lost, "3|||leased|"}},
		{"leased, and begun at an unknown time", retryjob.Leased, 1, []retryjob.Attempt{{Number: 1, Status: retryjob.Leased}}, []string{"1|lost||leased|"}},
		{"lost ones only", retryjob.DeadLettered, 3, nil, []string{"1-3||||" + lost}},
		{"a full record drops the second", retryjob.WaitingRetry, 70, full, []string{"1|1s|1s|waiting_retry|", "2-7||||" + dropped, "8|0s|0s|waiting_retry|"}},
		{"a full record and lost ones", retryjob.WaitingRetry, 72, full[:], []string{"1|1s|1s|waiting_retry|", "2-7||||" + dropped}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := retryjob.Record{Status: row.status, Attempts: row.attempts, History: row.history}
			var have []string
			next := 1
			for _, l := range jobsui.Attempts(&r, at(100)) {
				first, last, _ := strings.Cut(l.Number, "-")
				require.Equal(t, strconv.Itoa(next), first)
				next, _ = strconv.Atoi(cmp.Or(last, first))
				next++
				have = append(have, fmt.Sprintf("%s|%s|%s|%v|%s", l.Number, l.Took, l.Wait, l.Status, l.Err))
			}
			require.Equal(t, row.attempts, next-1, "every attempt has its line")
			require.Equal(t, row.want, have[:min(len(have), len(row.want))])
			if len(row.history) < 64 {
				require.Len(t, have, len(row.want))
			} else if row.attempts == 72 {
				require.Equal(t, "71-72||||"+lost, have[len(have)-1])
			}
		})
	}
}
