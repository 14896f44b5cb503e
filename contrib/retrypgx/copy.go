package retrypgx

import (
	"errors"
	"reflect"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/retrygo/retry"
)

// errUsedUp is permanent, since no attempt can have the rows again.
var errUsedUp = retry.Permanent(errors.New("retrypgx: an attempt before has read this pgx.CopyFromSource: make it in fn"))

// copies are the sources that the attempts of one run have read, and which one has. A source made outside fn is used up by
// the first attempt, so that the second would copy no rows, or the rest of them, and commit.
type copies struct {
	mu   sync.Mutex
	read map[pgx.CopyFromSource]*journal
}

// source returns a source in the place of src, which notes that src is read, or errUsedUp. Only a pointer is known again,
// as those of pgx are.
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
