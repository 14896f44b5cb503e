package retryhttp

import (
	"net/http"

	"github.com/retrygo/retry"
)

func NewClient(p retry.Policy) *http.Client { return nil }

type Transport struct {
	Policy         retry.Policy
	IdempotencyKey func(*http.Request) string
}

func (t *Transport) RoundTrip(*http.Request) (*http.Response, error) { return nil, nil }
