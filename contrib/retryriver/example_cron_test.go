package retryriver_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// A job that comes back by a cron expression, which any cron library can read.
func ExampleNewSQLite_cron() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	ctx := context.Background()
	schedule, err := cron.ParseStandard("CRON_TZ=Europe/Berlin 30 9 * * MON-FRI")
	if err != nil {
		fmt.Println(err)
		return
	}
	q, err := retryriver.NewSQLite(ctx, filepath.Join(dir, "jobs.db"), retryjob.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{"patient": retry.Patient()}),
		Handlers: map[string]retryjob.Handler{"report": func(context.Context, retryjob.Job) error { return nil }},
		Recurring: []retryjob.Recurring{{
			Name: "weekdays", Job: retryjob.Job{Kind: "report", Policy: "patient"},
			Next: func(_, ended time.Time) time.Time { return schedule.Next(ended) },
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()
	for {
		for job, err := range q.List(ctx, retryjob.Filter{Tags: []string{"recurring_weekdays"}}) {
			if err != nil {
				fmt.Println(err)
				return
			}
			berlin, _ := time.LoadLocation("Europe/Berlin")
			fmt.Println(job.Status, "until", job.FirstDue.In(berlin).Format("15:04"))
			return
		}
		time.Sleep(time.Millisecond)
	}
	// Output: pending until 09:30
}
