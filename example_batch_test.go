package retry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/retrygo/retry"
)

func ExampleDoBatch() {
	tries := 0
	send := func(_ context.Context, names []string) ([]retry.ItemError[string], error) {
		tries++
		fmt.Println("send", names)
		var failed []retry.ItemError[string]
		for _, name := range names {
			switch {
			case name == "bob" && tries == 1:
				failed = append(failed, retry.ItemError[string]{Item: name, Err: errors.New("busy")})
			case name == "eve":
				failed = append(failed, retry.ItemError[string]{Item: name, Err: retry.Permanent(errors.New("no such user"))})
			}
		}
		return failed, nil
	}
	left, err := retry.DoBatch(context.Background(), quick, []string{"ann", "bob", "eve"}, send)
	fmt.Println(errors.Is(err, retry.TerminalError), left)
	// Output:
	// send [ann bob eve]
	// send [bob]
	// true [no such user]
}

// DynamoDB's BatchWriteItem answers with the requests that it did not process.
func ExampleDoBatch_dynamoDB() {
	type request struct{ key string }
	type output struct{ UnprocessedItems map[string][]request }
	answers := []output{{map[string][]request{"orders": {{"b"}}}}, {}}
	batchWriteItem := func(context.Context, map[string][]request) (output, error) {
		answer := answers[0]
		answers = answers[1:]
		return answer, nil
	}
	errThrottled := errors.New("not processed")

	left, err := retry.DoBatch(context.Background(), quick, []request{{"a"}, {"b"}},
		func(ctx context.Context, items []request) ([]retry.ItemError[request], error) {
			fmt.Println("write", items)
			out, err := batchWriteItem(ctx, map[string][]request{"orders": items})
			if err != nil {
				return nil, err
			}
			return retry.ItemErrors(out.UnprocessedItems["orders"], errThrottled), nil
		})
	fmt.Println(left, err)
	// Output:
	// write [{a} {b}]
	// write [{b}]
	// [] <nil>
}

// SQS's SendMessageBatch answers with the ids of messages that failed, and whose fault that was.
func ExampleDoBatch_sqs() {
	type entry struct{ Id, Body string }
	type failure struct {
		Id, Message string
		SenderFault bool
	}
	answers := [][]failure{{{"2", "internal error", false}, {"3", "body too long", true}}, nil}
	sendMessageBatch := func(context.Context, []entry) ([]failure, error) {
		answer := answers[0]
		answers = answers[1:]
		return answer, nil
	}

	left, err := retry.DoBatch(context.Background(), quick, []entry{{"1", "x"}, {"2", "y"}, {"3", "z"}},
		func(ctx context.Context, entries []entry) (failed []retry.ItemError[entry], err error) {
			fmt.Println("send", entries)
			answer, err := sendMessageBatch(ctx, entries)
			for _, f := range answer {
				i := slices.IndexFunc(entries, func(e entry) bool { return e.Id == f.Id })
				err := errors.New(f.Message)
				if f.SenderFault {
					err = retry.Permanent(err)
				}
				failed = append(failed, retry.ItemError[entry]{Item: entries[i], Err: err})
			}
			return failed, err
		})
	fmt.Println(left[0].Item, left, err.(*retry.Error).Last)
	// Output:
	// send [{1 x} {2 y} {3 z}]
	// send [{2 y}]
	// {3 z} [body too long] 1 of 3 items failed: body too long
}

// Kinesis' PutRecords answers for each record by its position.
func ExampleDoBatch_kinesis() {
	type result struct{ ErrorCode string }
	answers := [][]result{{{""}, {"ProvisionedThroughputExceededException"}}, {{""}}}
	putRecords := func(context.Context, []string) ([]result, error) {
		answer := answers[0]
		answers = answers[1:]
		return answer, nil
	}

	left, err := retry.DoBatch(context.Background(), quick, []string{"a", "b"},
		func(ctx context.Context, records []string) (failed []retry.ItemError[string], err error) {
			fmt.Println("put", records)
			results, err := putRecords(ctx, records)
			for i, result := range results {
				if result.ErrorCode != "" {
					failed = append(failed, retry.ItemError[string]{Item: records[i], Err: errors.New(result.ErrorCode)})
				}
			}
			return failed, err
		})
	fmt.Println(left, err)
	// Output:
	// put [a b]
	// put [b]
	// [] <nil>
}

// Rows are inserted one by one, so that one that violates a constraint does not undo the others.
func ExampleDoBatch_rows() {
	errDuplicate, errDeadlock := errors.New("duplicate key"), errors.New("deadlock")
	tries := 0
	insert := func(_ context.Context, row int) error {
		tries++
		switch {
		case row == 2:
			return errDuplicate
		case row == 3 && tries < 4:
			return errDeadlock
		}
		return nil
	}

	p := quick
	p.Classify = retry.StopOn(errDuplicate)
	left, err := retry.DoBatch(context.Background(), p, []int{1, 2, 3},
		func(ctx context.Context, rows []int) (failed []retry.ItemError[int], _ error) {
			fmt.Println("insert", rows)
			for _, row := range rows {
				if err := insert(ctx, row); err != nil {
					failed = append(failed, retry.ItemError[int]{Item: row, Err: err})
				}
			}
			return failed, nil
		})
	fmt.Println(left[0].Item, left, errors.Is(err, errDuplicate))
	// Output:
	// insert [1 2 3]
	// insert [3]
	// 2 [duplicate key] true
}

// Elasticsearch's bulk API answers with a status for each action. 429 and 5xx can be mended by another attempt.
func ExampleDoBatch_elasticsearch() {
	type result struct {
		Status int
		Reason string
	}
	answers := [][]result{{{201, ""}, {429, "queue is full"}, {400, "mapper_parsing_exception"}}, {{201, ""}}}
	bulk := func(context.Context, []string) ([]result, error) {
		answer := answers[0]
		answers = answers[1:]
		return answer, nil
	}

	left, err := retry.DoBatch(context.Background(), quick, []string{"doc 1", "doc 2", "doc 3"},
		func(ctx context.Context, docs []string) (failed []retry.ItemError[string], err error) {
			fmt.Printf("bulk %q\n", docs)
			results, err := bulk(ctx, docs)
			for i, r := range results {
				err := fmt.Errorf("status %d: %s", r.Status, r.Reason)
				switch {
				case r.Status < 300:
					continue
				case r.Status != 429 && r.Status < 500:
					err = retry.Permanent(err)
				}
				failed = append(failed, retry.ItemError[string]{Item: docs[i], Err: err})
			}
			return failed, err
		})
	fmt.Println(left[0].Item, left, errors.Is(err, retry.TerminalError))
	// Output:
	// bulk ["doc 1" "doc 2" "doc 3"]
	// bulk ["doc 2"]
	// doc 3 [status 400: mapper_parsing_exception] true
}

// One kind of error has a limit of its own.
func ExamplePolicy_stop() {
	errSlow := errors.New("slow")
	p := quick
	p.MaxAttempts = 8
	p.Wait = func(attempt int, err error, computed time.Duration) time.Duration {
		if errors.Is(err, errSlow) && attempt >= 2 {
			return retry.Stop
		}
		return computed
	}
	err := retry.Do(context.Background(), p, func(context.Context) error { return errSlow })
	fmt.Println(errors.Is(err, retry.AttemptsExhausted), err.(*retry.Error).Attempts)
	// Output:
	// true 2
}
