package retryhttp_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryhttp/ssrf"
)

func answered(code int) error {
	return &retryhttp.AttemptError{Reason: retryhttp.Reason(fmt.Sprintf("status_%d", code)), StatusCode: code}
}

func failed(reason retryhttp.Reason) error {
	return &retryhttp.AttemptError{Reason: reason, Err: errors.New("dial tcp: no")}
}

func TestRulesByStatus(t *testing.T) {
	t.Parallel()
	const retryable, terminal = retry.Retryable, retry.Terminal
	rows := []struct {
		name   string
		codes  []int
		class  retry.Class
		strict retry.Class
	}{
		{"2xx that is not accepted", []int{200, 201, 202, 204, 205, 206, 299}, retryable, retryable},
		{"101 that is not accepted", []int{101}, retryable, retryable},
		{"3xx", []int{300, 301, 302, 303, 304, 307, 308, 399}, terminal, terminal},
		{"408", []int{408}, retryable, retryable},
		{"409", []int{409}, terminal, terminal},
		{"413, 421, 423, 425", []int{413, 421, 423, 425}, terminal, terminal},
		{"429", []int{429}, retryable, retryable},
		{"499 and other 4xx", []int{400, 401, 403, 404, 407, 410, 418, 422, 428, 431, 451, 499}, terminal, terminal},
		{"500, 502, 504", []int{500, 502, 504}, retryable, retryable},
		{"503", []int{503}, retryable, retryable},
		{"501, 505, 506, 508, 510, 511", []int{501, 505, 506, 508, 510, 511}, retryable, terminal},
		{"507, 509, 520-530, 598, 599", []int{507, 509, 520, 521, 522, 523, 524, 525, 526, 530, 598, 599}, retryable, retryable},
		{"below 100 or from 600 on", []int{-1, 1, 99, 600, 999, 1200}, retryable, retryable},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			for _, code := range row.codes {
				require.Equal(t, row.class, retryhttp.Classify(answered(code)), "Classify of %d", code)
				require.Equal(t, row.strict, retryhttp.ClassifyStrict(answered(code)), "ClassifyStrict of %d", code)
			}
		})
	}

	t.Run("every status agrees with the rules read out as text", func(t *testing.T) {
		for code := -5; code <= 1200; code++ {
			if code == 0 {
				continue // no response
			}
			text, class := strconv.Itoa(code), retry.Terminal
			switch {
			case len(text) != 3, !strings.Contains("34", text[:1]):
				class = retry.Retryable
			case text == "408" || text == "429":
				class = retry.Retryable
			}
			strict := class
			if strings.Contains(" 501 505 506 508 510 511 ", " "+text+" ") {
				strict = retry.Terminal
			}
			require.Equal(t, class, retryhttp.Classify(answered(code)), "Classify of %d", code)
			require.Equal(t, strict, retryhttp.ClassifyStrict(answered(code)), "ClassifyStrict of %d", code)
		}
	})
}

func TestRulesByReason(t *testing.T) {
	t.Parallel()
	const unknown, retryable, terminal = retry.Unknown, retry.Retryable, retry.Terminal
	rows := []struct {
		name    string
		reasons []retryhttp.Reason
		class   retry.Class
		strict  retry.Class
	}{
		{"a blocked address is terminal", []retryhttp.Reason{retryhttp.AddressBlocked}, terminal, terminal},
		{"a request that cannot be sent is terminal", []retryhttp.Reason{retryhttp.InvalidRequest, retryhttp.BodyFailed}, terminal, terminal},
		{"a request that cannot be sent again is terminal", []retryhttp.Reason{
			retryhttp.BodyNotReplayable, retryhttp.NotIdempotent, retryhttp.DoNotRetry,
		}, terminal, terminal},
		{"the rest of a body that cannot be had is terminal", []retryhttp.Reason{retryhttp.ContentChanged, retryhttp.NotResumable}, terminal, terminal},
		{"what the caller has ended is terminal", []retryhttp.Reason{
			retryhttp.Redirect, retryhttp.Canceled, retryhttp.DeadlinePassed,
		}, terminal, terminal},
		{"what a deployment or another server behind the name may mend is terminal for ClassifyStrict alone", []retryhttp.Reason{
			retryhttp.TLSCertificate, retryhttp.TLSAlert, retryhttp.TLSNotSpoken, retryhttp.DNSNotFound, retryhttp.ProxyAuth,
		}, retryable, terminal},
		{"every other fault is retryable", []retryhttp.Reason{
			retryhttp.DNSFailed, retryhttp.DialTimeout, retryhttp.DialFailed, retryhttp.ProxyConnect, retryhttp.ConnRefused,
			retryhttp.ConnReset, retryhttp.ConnClosed, retryhttp.TLSFailed, retryhttp.StreamReset, retryhttp.AttemptTimeout,
			retryhttp.Timeout, retryhttp.MalformedResponse, retryhttp.BodyTruncated, retryhttp.DigestMismatch, retryhttp.TransportError,
		}, retryable, retryable},
		{"a word that is not known yet is retryable", []retryhttp.Reason{"", "meteor"}, retryable, retryable},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			for _, reason := range row.reasons {
				require.Equal(t, row.class, retryhttp.Classify(failed(reason)), "Classify of %s", reason)
				require.Equal(t, row.strict, retryhttp.ClassifyStrict(failed(reason)), "ClassifyStrict of %s", reason)
			}
		})
	}

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	raw := []struct {
		name   string
		err    error
		class  retry.Class
		strict retry.Class
	}{
		{"nil is none of our business", nil, unknown, unknown},
		{"an error that is not from HTTP is left to others", errors.New("out of stock"), unknown, unknown},
		{"context.Canceled is left to the default rules", fmt.Errorf("get: %w", context.Canceled), unknown, unknown},
		{"a nil *AttemptError is left to others", (*retryhttp.AttemptError)(nil), unknown, unknown},
		{"a fault is judged without an *AttemptError", io.ErrUnexpectedEOF, retryable, retryable},
		{"a fault is judged below *url.Error and %w", fmt.Errorf("get: %w", &url.Error{Op: "Get", URL: "/", Err: x509.HostnameError{Certificate: &x509.Certificate{}}}), retryable, terminal},
		{"a body that is not as long as the request says is terminal", &url.Error{Op: "Put", URL: "/", Err: errors.New("http: ContentLength=10 with Body length 3")}, terminal, terminal},
		{"a fault is judged in a join", errors.Join(errors.New("first"), ssrf.ErrBlocked), terminal, terminal},
		{"the outermost of two *AttemptErrors counts", &retryhttp.AttemptError{StatusCode: 503, Err: answered(404)}, retryable, retryable},
		{"a status counts more than the error beside it", &retryhttp.AttemptError{StatusCode: 404, Err: io.EOF}, terminal, terminal},
		{"what was not to be repeated is not repeated further out", &retryhttp.AttemptError{StatusCode: 503, Veto: retryhttp.NotIdempotent}, terminal, terminal},
		{"what the server says is not to be repeated is not", &retryhttp.AttemptError{StatusCode: 503, Header: http.Header{"X-Should-Retry": {"false"}}}, terminal, terminal},
		{"what a run inside found terminal is not repeated", &retry.Error{Outcome: retry.Outcome{Reason: retry.TerminalError}, Last: answered(503)}, terminal, terminal},
		{"a marked error is judged as if it was not", retry.Transient(answered(404)), terminal, terminal},
		{"what was terminal in a run inside is terminal", &retry.Error{Last: answered(404)}, terminal, terminal},
		{"a fault that is the cause of a run inside is judged", fmt.Errorf("order: %w", retry.Policy{}.NewError(t.Context(), retry.Outcome{Reason: retry.DeadlinePassed}, fmt.Errorf("get: %w", failed(retryhttp.DNSNotFound)))), retryable, terminal},
		{"a run inside that was cancelled is left to the default rules", retry.Policy{}.NewError(gone, retry.Outcome{Reason: retry.CallerCanceled}, nil), unknown, unknown},
		{"a run inside that failed otherwise is left to others", &retry.Error{Last: errors.New("out of stock")}, unknown, unknown},
		{"a look-up that failed without a dial is judged", &net.DNSError{Err: "no such host", IsNotFound: true}, retryable, terminal},
	}
	for _, row := range raw {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.class, retryhttp.Classify(row.err), "Classify")
			require.Equal(t, row.strict, retryhttp.ClassifyStrict(row.err), "ClassifyStrict")
		})
	}
}

func TestOnStatus(t *testing.T) {
	t.Parallel()
	codes := []int{409, 423, 0}
	onStatus := retryhttp.OnStatus(retry.Retryable, codes...)
	codes[0] = 404
	require.Equal(t, retry.Retryable, onStatus(answered(409)), "the codes are its own copy")
	require.Equal(t, retry.Retryable, onStatus(fmt.Errorf("put: %w", answered(423))))
	require.Equal(t, retry.Unknown, onStatus(answered(404)))
	require.Equal(t, retry.Unknown, onStatus(failed(retryhttp.ConnReset)), "0 is not a status")
	require.Equal(t, retry.Unknown, onStatus(errors.New("409")))
	require.Equal(t, retry.Unknown, onStatus(nil))
	require.Equal(t, retry.Unknown, onStatus((*retryhttp.AttemptError)(nil)))
	require.Equal(t, retry.Unknown, retryhttp.OnStatus(retry.Terminal)(answered(409)), "no codes")

	both := retry.FirstOf(retryhttp.OnStatus(retry.Terminal, 503), retryhttp.Classify)
	require.Equal(t, retry.Terminal, both(answered(503)))
	require.Equal(t, retry.Retryable, both(answered(502)))
}
