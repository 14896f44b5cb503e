package retryriver

import (
	"context"
	"fmt"
	"time"

	"github.com/retrygo/retry/retryjob"
)

// Queues implements retryjob.Admin. It reads one of River's indexes only, so it counts River's own jobs too: they share
// the workers of the queue.
func (m *Admin[TTx]) Queues(ctx context.Context) ([]retryjob.QueueDepth, error) {
	q := m.query()
	due := q.sql.dueAt + " <= " + q.arg(time.Now().UnixMicro())
	count := func(what string) string { return "sum(CASE WHEN " + what + " THEN 1 ELSE 0 END)" }
	sql := "SELECT queue, " +
		count("state = 'running'") + " AS running, " +
		count("state <> 'running' AND "+due) + " AS due, " +
		count("state <> 'running' AND NOT "+due) + " AS later, " +
		"min(CASE WHEN state <> 'running' THEN " + q.sql.dueAt + " END) AS oldest " +
		"FROM " + q.schema + "river_job WHERE state IN ('available', 'pending', 'retryable', 'running', 'scheduled') GROUP BY queue"
	var rows []struct {
		Queue               string
		Running, Due, Later int
		Oldest              *int64 // the earliest due time, which may be in the future
	}
	all := "SELECT " + fmt.Sprintf(q.sql.array, q.sql.fields("queue", "running", "due", "later", "oldest")+")") + " FROM (" + sql + ") AS d"
	if err := q.into(ctx, m.client.Driver().GetExecutor(), &rows, all); err != nil {
		return nil, err
	}
	depths := make([]retryjob.QueueDepth, len(rows))
	for i, row := range rows {
		depths[i] = retryjob.QueueDepth{Queue: row.Queue, Due: row.Due, Later: row.Later, Running: row.Running}
		if row.Due > 0 && row.Oldest != nil {
			depths[i].Oldest = time.UnixMicro(*row.Oldest).UTC()
		}
	}
	return depths, nil
}
