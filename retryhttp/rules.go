package retryhttp

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/retrygo/retry"
)

// Classify is the classifier of a Transport, and may be used in any other policy. It judges an *AttemptError and any
// error of an http.RoundTripper, an http.Client or a response's body, by the result of ReasonOf.
//
//   - Retryable: 408, 429, every 5xx, and a status outside 100 to 599, which RFC 9110, section 15, treats as a 5xx. A
//     2xx or 101, which is an *AttemptError only if Transport.Accept has refused it. Every fault on the way to the
//     server and back, including a certificate that does not verify and a host without address.
//   - Terminal: every 3xx and every other 4xx. A response with X-Should-Retry or Stripe-Should-Retry: false, with
//     X-Envoy-Overloaded or with Finagle-Http-Nonretryable-Nack. A blocked address, a request that cannot be sent, or
//     not again, as it is, a redirect that was not followed, and a request that was given up.
//   - Unknown: an error that is not an *AttemptError and about which ReasonOf has no word, and context.Canceled, so
//     that the next classifier or the default rules judge it.
//
// It judges the last failure in the error of a nested run. A failure that was terminal there is terminal here, with two
// exceptions that concern one request only. A request's body that could not be sent again and a response's body that
// could not be resumed are Retryable, as they are without a Transport.
func Classify(err error) retry.Class { return find(err).class() }

// ClassifyStrict is Classify, but also treats failures as terminal that another attempt does not change if the server
// stays the same. These are 501, 505, 506, 508, 510 and 511, a certificate that does not verify, a TLS alert, a port
// without TLS, a host without address, and a proxy that wants credentials.
//
// Classify repeats these because one bad server among several behind a name, and DNS that lags behind a deployment,
// look the same.
func ClassifyStrict(err error) retry.Class {
	f := find(err)
	if f.permanent() {
		return retry.Terminal
	}
	return f.class()
}

// OnStatus returns a classifier that answers class for an *AttemptError, which errors.As finds, with one of the status
// codes, otherwise Unknown. It goes before Classify or ClassifyStrict in retry.FirstOf:
//
//	retry.FirstOf(retryhttp.OnStatus(retry.Retryable, 409, 423), retryhttp.ClassifyStrict)
//
// The code 0 matches no error.
func OnStatus(class retry.Class, codes ...int) retry.Classifier {
	codes = slices.Clone(codes) // the caller may reuse the slice
	return func(err error) retry.Class {
		attempt := attemptError(err)
		if attempt != nil && attempt.StatusCode != 0 && slices.Contains(codes, attempt.StatusCode) {
			return class
		}
		return retry.Unknown
	}
}

// doNotRetry reports whether the header of a response forbids to repeat the request. Stripe's clients read the first
// two fields. The clients of OpenAI and Anthropic read the first. The last two forbid it by being there, because
// Envoy's router and Finagle's HttpNackFilter look at no value either.
func doNotRetry(h http.Header) bool {
	forbids := func(value string) bool { return strings.EqualFold(strings.TrimSpace(value), "false") }
	return slices.ContainsFunc(h["X-Should-Retry"], forbids) || slices.ContainsFunc(h["Stripe-Should-Retry"], forbids) ||
		turnedAway(h)
}

// inDoubtHeader is "true" in a response whose server does not know whether the work was done. Packages retrygrpc and
// retryconnect send the same word as the metadata key retry-in-doubt.
const inDoubtHeader = "Retry-In-Doubt"

// saysDoubt reports whether the header of a response leaves open whether the work was done.
func saysDoubt(h http.Header) bool {
	return slices.ContainsFunc(h[inDoubtHeader], func(value string) bool {
		return strings.EqualFold(strings.TrimSpace(value), "true")
	})
}

// turnedAway reports whether a proxy has not passed the request on, by its own header.
func turnedAway(h http.Header) bool {
	return h["X-Envoy-Overloaded"] != nil || h["Finagle-Http-Nonretryable-Nack"] != nil
}

// finding is the part of an error that the rules look at.
type finding struct {
	status int    // 0 if there was no response
	reason Reason // if there was no response
	known  bool   // the rules have an opinion
	vetoed bool   // it is that the error is Terminal
}

func find(err error) finding {
	if attempt := attemptError(err); attempt != nil {
		return findAttempt(err, attempt)
	}
	reason, _ := fault(err)
	known := reason != "" && reason != TransportError && !errors.Is(err, context.Canceled)
	return finding{0, reason, known, errors.Is(err, retry.TerminalError)}
}

func findAttempt(err error, attempt *AttemptError) finding {
	var run *retry.Error
	switch {
	case !errors.As(err, &run):
	case attempt.rest && attempt.Reason != Canceled && attempt.Reason != DeadlinePassed:
		return finding{reason: BodyTruncated, known: true} // whatever came of asking for the rest
	case attempt.Veto == BodyNotReplayable && attempt.Reason != BodyNotReplayable:
		return finding{status: attempt.StatusCode, reason: attempt.Reason, known: true} // the next request has its own body
	}
	vetoed := attempt.Veto != "" || doNotRetry(attempt.Header) || errors.Is(err, retry.TerminalError)
	return finding{attempt.StatusCode, attempt.Reason, true, vetoed}
}

// class returns Classify's answer.
func (f finding) class() retry.Class {
	switch {
	case f.vetoed:
		return retry.Terminal
	case !f.known:
		return retry.Unknown
	case f.status != 0:
		return statusClass(f.status)
	default:
		return reasonClass(f.reason)
	}
}

func statusClass(code int) retry.Class {
	switch {
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests:
		return retry.Retryable
	case code >= 300 && code < 500:
		return retry.Terminal
	default: // 5xx, a status that is treated as one, and a success that is not accepted
		return retry.Retryable
	}
}

// isAnswer reports whether a healthy server sends the status, a success that Accept has refused included.
func isAnswer(code int) bool { return succeeded(code) || statusClass(code) == retry.Terminal }

func reasonClass(reason Reason) retry.Class {
	switch reason {
	case AddressBlocked, InvalidRequest, BodyFailed, BodyNotReplayable, NotIdempotent, DoNotRetry,
		ContentChanged, NotResumable, Redirect, Canceled, DeadlinePassed:
		return retry.Terminal
	default:
		return retry.Retryable
	}
}

// permanent reports whether only ClassifyStrict treats it as terminal.
func (f finding) permanent() bool {
	switch f.status {
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported, http.StatusVariantAlsoNegotiates,
		http.StatusLoopDetected, http.StatusNotExtended, http.StatusNetworkAuthenticationRequired:
		return true
	case 0:
		switch f.reason {
		case TLSCertificate, TLSAlert, TLSNotSpoken, DNSNotFound, ProxyAuth:
			return true
		}
	}
	return false
}
