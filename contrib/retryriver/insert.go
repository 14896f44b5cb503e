package retryriver

import (
	"context"
	"fmt"

	"github.com/riverqueue/river/riverdriver"

	"github.com/retrygo/retry/retryjob"
)

// River's insert changes the kind of a job that is there already: a conflict of unique keys must update something for
// the statement to return the row. So an insert of a job of retryjob that is a duplicate is an error here, and a
// transaction or a savepoint undoes it.

func (d fencedDriver[TTx]) UnwrapExecutor(tx TTx) riverdriver.ExecutorTx {
	return fencedTx{d.Driver.UnwrapExecutor(tx), true}
}

func (d fencedDriver[TTx]) UnwrapTx(tx riverdriver.ExecutorTx) TTx {
	if own, ok := tx.(fencedTx); ok {
		tx = own.ExecutorTx
	}
	return d.Driver.UnwrapTx(tx)
}

func (e fencedExecutor) Begin(ctx context.Context) (riverdriver.ExecutorTx, error) {
	tx, err := e.Executor.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return fencedTx{tx, false}, nil
}

// fencedTx is a transaction in which a duplicate of a job of retryjob is refused.
type fencedTx struct {
	riverdriver.ExecutorTx
	lasting bool // it is the caller's, who may commit it after an error
}

// JobInsertFastMany inserts the jobs, or returns retryjob.ErrDuplicate if one of retryjob's is there already. After the
// error a transaction of the caller is as it was before. Any other transaction is undone by the code that began it.
func (t fencedTx) JobInsertFastMany(ctx context.Context, p *riverdriver.JobInsertFastManyParams) (results []*riverdriver.JobInsertFastResult, err error) {
	insert := func(tx riverdriver.ExecutorTx) (err error) {
		if err := refuseGenerated(ctx, tx, p); err != nil {
			return err
		}
		results, err = tx.JobInsertFastMany(ctx, p)
		if err != nil {
			return err
		}
		for i, result := range results {
			args, ours := p.Jobs[i].Args.(*jobArgs)
			if ours && result.UniqueSkippedAsDuplicate {
				return fmt.Errorf("job %s: %w", args.record.JobID, retryjob.ErrDuplicate)
			}
		}
		return nil
	}
	if t.lasting && anyChosen(p) {
		err = within(ctx, t.ExecutorTx, insert)
	} else {
		err = insert(t.ExecutorTx)
	}
	return results, err
}

// anyChosen reports whether the caller has chosen the ID of a job. The others cannot be duplicates.
func anyChosen(p *riverdriver.JobInsertFastManyParams) bool {
	for _, job := range p.Jobs {
		if args, ours := job.Args.(*jobArgs); ours && args.record.JobID != "" {
			return true
		}
	}
	return false
}
