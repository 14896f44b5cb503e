package retryhttp_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

func ExampleReasonOf() {
	status := &retryhttp.AttemptError{Reason: "status_503", StatusCode: 503}
	fmt.Println(retryhttp.ReasonOf(&retry.Error{Last: status}))

	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	fmt.Println(retryhttp.ReasonOf(fmt.Errorf("get: %w", refused)))

	_, err := http.Get("gopher://example.com")
	fmt.Println(retryhttp.ReasonOf(err))

	fmt.Println(retryhttp.ReasonOf(errors.New("no idea")))
	// Output:
	// status_503
	// conn_refused
	// invalid_request
	// transport_error
}

func ExampleClassify() {
	for _, code := range []int{404, 429, 501, 503} {
		err := &retryhttp.AttemptError{StatusCode: code}
		fmt.Println(code, retryhttp.Classify(err))
	}
	unknownHost := &net.DNSError{Err: "no such host", Name: "example.invalid", IsNotFound: true}
	fmt.Println(retryhttp.ReasonOf(unknownHost), retryhttp.Classify(unknownHost))
	// Output:
	// 404 terminal
	// 429 retryable
	// 501 retryable
	// 503 retryable
	// dns_not_found retryable
}

func ExampleClassifyStrict() {
	for _, code := range []int{404, 429, 501, 503} {
		err := &retryhttp.AttemptError{StatusCode: code}
		fmt.Println(code, retryhttp.ClassifyStrict(err))
	}
	unknownHost := &net.DNSError{Err: "no such host", Name: "example.invalid", IsNotFound: true}
	fmt.Println(retryhttp.ReasonOf(unknownHost), retryhttp.ClassifyStrict(unknownHost))
	// Output:
	// 404 terminal
	// 429 retryable
	// 501 terminal
	// 503 retryable
	// dns_not_found terminal
}

func ExampleOnStatus() {
	p := retry.Policy{
		// 423 Locked passes; the rest is as ClassifyStrict says.
		Classify: retry.FirstOf(retryhttp.OnStatus(retry.Retryable, 409, 423), retryhttp.ClassifyStrict),
	}
	for _, code := range []int{409, 422, 423} {
		err := &retryhttp.AttemptError{StatusCode: code}
		fmt.Println(code, p.Classify(err))
	}
	// Output:
	// 409 retryable
	// 422 terminal
	// 423 retryable
}
