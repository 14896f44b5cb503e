package retryriver

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	"github.com/riverqueue/river/riverdriver"

	"github.com/retrygo/retry/retryjob"
)

// keyPrefix begins the unique key of each job of retryjob. River's own unique keys are hashes, so no other program's job
// has such a key, whatever its metadata is.
const keyPrefix = "retryjob"

// keyOf returns River's unique key of an ID that a caller has chosen. It keeps such IDs unique, and its index finds
// their jobs.
func keyOf(id string) []byte {
	sum := sha256.Sum256([]byte(id))
	return append([]byte(keyPrefix), sum[:]...)
}

// A job that is enqueued without an ID gets its ID from the number of its row and from a random key. River's index of
// unique keys does not have that key, as the row has no unique states. An entry for each state of a job would cost more
// than anything else that a job has beyond one of River's own. The first replay, which gives the job another row, makes
// the ID one that was chosen.

const randomLength = 16 // 80 bits in base 32

// randomKey returns the unique key of a job without a chosen ID.
func randomKey() []byte { return []byte(keyPrefix + strings.ToLower(rand.Text()[:randomLength])) }

// generatedID returns the ID of the job in a row with a random key.
func generatedID(row int64, key []byte) string {
	return strconv.FormatInt(row, 10) + "-" + string(key[len(keyPrefix):])
}

// isRandom reports whether a unique key is that of a job without a chosen ID.
func isRandom(key []byte) bool {
	return len(key) == len(keyPrefix)+randomLength && bytes.HasPrefix(key, []byte(keyPrefix))
}

// rowOf returns the number of the row that a generated ID names, and false if an ID is not of that form.
func rowOf(id string) (row int64, ok bool) {
	number, random, _ := strings.Cut(id, "-")
	if len(random) != randomLength {
		return 0, false
	}
	row, err := strconv.ParseInt(number, 10, 64)
	return row, err == nil
}

// refuseGenerated returns retryjob.ErrDuplicate if one of the chosen IDs is the generated ID of a job that is there,
// which River's index of unique keys does not have. It does not see a job whose transaction has not committed.
func refuseGenerated(ctx context.Context, exec riverdriver.Executor, p *riverdriver.JobInsertFastManyParams) error {
	var numbers []int64
	chosen := map[string]bool{}
	for _, job := range p.Jobs {
		args, ours := job.Args.(*jobArgs)
		if !ours {
			continue
		}
		if row, ok := rowOf(args.record.JobID); ok {
			numbers = append(numbers, row)
			chosen[args.record.JobID] = true
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	rows, err := exec.JobGetByIDMany(ctx, &riverdriver.JobGetByIDManyParams{ID: numbers, Schema: p.Schema})
	if err != nil {
		return err
	}
	for _, row := range rows {
		if !isRandom(row.UniqueKey) {
			continue
		}
		if id := generatedID(row.ID, row.UniqueKey); chosen[id] {
			return fmt.Errorf("job %s: %w", id, retryjob.ErrDuplicate)
		}
	}
	return nil
}
