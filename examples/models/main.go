// Command models calls a service of language models that limits, is overloaded and breaks off, and shows how a client
// with retryhttp fares. The service is a fake in the same process.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

func main() {
	for _, call := range calls {
		if err := call.show(context.Background(), os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// call is one request and the service's answers to its attempts.
type call struct {
	name    string
	answers []answer
}

var whole = answer{status: 200, events: []string{"event: token\ndata: Hello", "event: token\ndata: , world"}}

var calls = []call{
	{"the rate limit is used up", []answer{{status: 429, header: "retry-after-ms: 300"}, whole}},
	{"it is, until a given time", []answer{{status: 429, header: "x-ratelimit-reset: 1"}, whole}},
	{"the service is overloaded", []answer{{status: 529}, {status: 529}, whole}},
	{"the stream begins with an error", []answer{{status: 200, events: []string{"event: error\ndata: overloaded"}}, whole}},
	{"the stream breaks off before it", []answer{{status: 200, breaks: true}, whole}},
	{"the stream breaks off within", []answer{{status: 200, events: whole.events[:1], breaks: true}, whole}},
	{"the request is wrong", []answer{{status: 400}, whole}},
	{"the service wants no retry", []answer{{status: 500, header: "x-should-retry: false"}, whole}},
	{"the wait would be an hour", []answer{{status: 429, header: "retry-after: 3600"}, whole}},
}

// show makes the call and writes a line about it.
func (c call) show(ctx context.Context, w io.Writer) error {
	service := &fake{answers: c.answers}
	client := newClient(service, retry.NewBudget(retry.BudgetConfig{Initial: 10}))
	req, err := http.NewRequestWithContext(retryhttp.WithOutcome(ctx), http.MethodPost, "http://models.example/v1/messages",
		strings.NewReader(`{"stream":true}`))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	outcome, recorded := retryhttp.OutcomeOf(resp, err)
	if recorded != nil {
		return recorded
	}
	if service.keys() > 1 {
		return errors.New("the attempts at one request have more than one key")
	}
	result := ""
	if err == nil {
		defer resp.Body.Close()
		result, err = read(resp)
	}
	if err != nil {
		result = strings.TrimSpace(result + " " + err.Error())
	}
	_, err = fmt.Fprintf(w, "%-32s %-27s %s\n", c.name, attempts(outcome), result)
	return err
}

// read returns the text of a stream.
func read(resp *http.Response) (string, error) {
	if err := retryhttp.CheckResponse(resp); err != nil {
		return "", err
	}
	var text strings.Builder
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, _ := strings.CutPrefix(lines.Text(), "data: ")
		if data != lines.Text() {
			text.WriteString(data)
		}
	}
	return text.String(), lines.Err()
}

// attempts returns "status_429, then 1 more", and how the run ended if that was no success.
func attempts(o retry.Outcome) string {
	var reasons []string
	for _, a := range o.History {
		reasons = append(reasons, string(retryhttp.ReasonOf(a.Err)))
	}
	if o.Status != retry.Succeeded {
		return strings.Join(reasons, ", ") + ": " + o.Reason.Error()
	}
	return strings.Join(append(reasons, "ok"), ", ")
}

// answer is the service's answer to one attempt.
type answer struct {
	status int
	header string
	events []string
	breaks bool // the stream, after its events
}

// fake is a service of language models in memory. It answers after 100ms.
type fake struct {
	answers []answer
	asked   []string // the key of each request
}

func (f *fake) RoundTrip(req *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, req.Body)
	_ = req.Body.Close()
	time.Sleep(100 * time.Millisecond)
	a := f.answers[len(f.asked)]
	f.asked = append(f.asked, req.Header.Get("Idempotency-Key"))
	resp := &http.Response{StatusCode: a.status, Header: http.Header{}, ProtoMajor: 1, ProtoMinor: 1, Request: req}
	if name, value, ok := strings.Cut(a.header, ": "); ok {
		resp.Header.Set(name, value)
	}
	if a.status == http.StatusOK {
		resp.Header.Set("Content-Type", "text/event-stream")
	}
	body := strings.Join(a.events, "\n\n")
	if body != "" {
		body += "\n\n"
	}
	resp.Body = &stream{strings.NewReader(body), a.breaks}
	return resp, nil
}

// keys returns the number of different keys that were sent.
func (f *fake) keys() int {
	different := map[string]bool{}
	for _, key := range f.asked {
		different[key] = true
	}
	return len(different)
}

type stream struct {
	io.Reader
	breaks bool
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err == io.EOF && s.breaks {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (s *stream) Close() error { return nil }
