package retrypgx

import (
	"errors"
	"reflect"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/retrygo/retry"
)

// errUsedUp is permanent, since no later attempt can read the rows again.
var errUsedUp = retry.Permanent(errors.New("retrypgx: the pgx.CopyFromSource was read by an earlier attempt (create it in fn)"))

// copies maps each source that a run has read to the attempt that read it. The first attempt uses up a source made
// outside fn, so the second would copy no rows, or only the remaining ones, and commit.
type copies struct {
	mu   sync.Mutex
	read map[pgx.CopyFromSource]*journal
}

// source returns a source that reads src and records the attempt, or errUsedUp. It recognizes only pointers, such as
// those of pgx.
func (c *copies) source(src pgx.CopyFromSource, attempt *journal) (pgx.CopyFromSource, error) {
	if v := reflect.ValueOf(src); v.Kind() != reflect.Pointer || v.Type().Elem().Size() == 0 {
		return src, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if by, ok := c.read[src]; ok && by != attempt {
		return nil, errUsedUp
	}
	return &source{src, sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.read == nil {
			c.read = map[pgx.CopyFromSource]*journal{}
		}
		c.read[src] = attempt
	})}, nil
}

// source is a pgx.CopyFromSource that calls noted before it is read.
type source struct {
	pgx.CopyFromSource
	noted func()
}

func (s *source) Next() bool {
	s.noted()
	return s.CopyFromSource.Next()
}
