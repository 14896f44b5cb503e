package retryaws

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp/hints"
)

// classifier asks own, then the attempt's timeout, the SDK's list and 429, and stops otherwise. The SDK treats an attempt's
// timeout as a cancellation by the caller, and has 429 in its list from v1.48 on.
func classifier(own retry.Classifier) retry.Classifier {
	return retry.FirstOf(own, retry.RetryOn(retry.ErrAttemptTimeout), listed, retry.RetryIf(tooMany), retry.Otherwise(retry.Terminal))
}

// tooMany reports whether the response of err is 429 Too Many Requests, which says that the work was not done.
func tooMany(err error) bool {
	resp := responseOf(err)
	return resp != nil && resp.StatusCode == http.StatusTooManyRequests
}

// listed returns the verdict of the SDK's own list.
func listed(err error) retry.Class {
	switch awsretry.IsErrorRetryables(awsretry.DefaultRetryables).IsErrorRetryable(err) {
	case aws.TrueTernary:
		return retry.Retryable
	case aws.FalseTernary:
		return retry.Terminal
	default:
		return retry.Unknown
	}
}

// answered reports whether err, which must not be repeated, is the answer of a healthy service. Throttling, which some
// services report with 400, is not.
func answered(err error) bool {
	resp := responseOf(err)
	if resp == nil || listed(err) == retry.Retryable {
		return false
	}
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	default:
		return resp.StatusCode >= 300 && resp.StatusCode <= 499
	}
}

// responseOf returns the response of err, or nil.
func responseOf(err error) *http.Response {
	var failed *smithyhttp.ResponseError
	if errors.As(err, &failed) && failed.Response != nil {
		return failed.Response.Response
	}
	return nil
}

// hinted returns err with the wait that its response asks for, the longer of two.
func hinted(err error) error {
	resp := responseOf(err)
	if resp == nil {
		return err
	}
	hint := hints.RetryAfter(resp.Header, time.Now())
	const most = uint64(1<<63-1) / uint64(time.Millisecond)
	ms, bad := strconv.ParseUint(strings.TrimSpace(resp.Header.Get("X-Amz-Retry-After")), 10, 64)
	if bad == nil || errors.Is(bad, strconv.ErrRange) {
		hint = max(hint, time.Duration(min(ms, most))*time.Millisecond)
	}
	return retry.After(hint, err)
}
