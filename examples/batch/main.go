// Command batch sends messages to a queue that takes only some of a batch, and repeats the rest of each. The queue is a
// fake in the same process.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// chunk is the largest number of messages in a request.
const chunk = 6

var policy = retry.Policy{
	MaxAttempts: 3, // without progress
	Backoff:     retry.Backoff{Base: 100 * time.Millisecond},
	TTL:         time.Minute, // bounds a run of which each attempt sends one message
}

// run sends the messages a to l and writes each request, and the messages that were not sent.
func run(ctx context.Context, w io.Writer) error {
	messages := strings.Fields("a b c d e f g h i j k l")
	q := &queue{w: w, began: time.Now(), answers: slices.Clone(answers)}
	for batch := range slices.Chunk(messages, chunk) {
		left, err := retry.DoBatch(ctx, policy, batch, q.send)
		var failed *retry.Error
		if err != nil && !errors.As(err, &failed) {
			return err
		}
		for _, item := range left {
			later := "can be sent later"
			if class, _ := policy.Judge(item.Err); class == retry.Terminal {
				later = "must be changed"
			}
			fmt.Fprintf(w, "        not sent: %s (%v), which %s\n", item.Item, item.Err, later)
		}
	}
	return nil
}

var (
	errThrottled = errors.New("throttled")
	errReset     = errors.New("connection reset")
)

// send is the function of DoBatch. It sends the messages and returns those that the queue has not taken.
func (q *queue) send(_ context.Context, messages []string) ([]retry.ItemError[string], error) {
	a, err := q.request(messages)
	if err != nil {
		return nil, err // it is the error of all messages
	}
	failed := retry.ItemErrors(a.throttled, retry.After(a.wait, errThrottled))
	for _, message := range a.tooLong {
		failed = append(failed, retry.ItemError[string]{Item: message, Err: retry.Permanent(errors.New("too long"))})
	}
	return failed, nil
}

// answer is the answer of the queue to a request. It has taken the messages that are in none of the lists.
type answer struct {
	throttled []string
	wait      time.Duration // for the throttled messages
	tooLong   []string
	err       error // no answer has come
}

var answers = []answer{
	{throttled: []string{"d", "e"}, wait: 300 * time.Millisecond, tooLong: []string{"f"}},
	{err: errReset},
	{},
	{throttled: []string{"h"}},
	{throttled: []string{"h"}},
	{throttled: []string{"h"}},
}

type queue struct {
	w       io.Writer
	began   time.Time
	answers []answer
}

// request returns the next of the answers and writes a line about it.
func (q *queue) request(messages []string) (answer, error) {
	a := q.answers[0]
	q.answers = q.answers[1:]
	result := []string{}
	if a.throttled != nil {
		result = append(result, "throttled "+strings.Join(a.throttled, " "))
	}
	if a.tooLong != nil {
		result = append(result, "refused "+strings.Join(a.tooLong, " "))
	}
	if a.err != nil {
		result = append(result, a.err.Error())
	}
	if len(result) == 0 {
		result = append(result, "took all")
	}
	fmt.Fprintf(q.w, "%-6v  send %-13s %s\n", time.Since(q.began).Round(10*time.Millisecond),
		strings.Join(messages, " "), strings.Join(result, ", "))
	return a, a.err
}
