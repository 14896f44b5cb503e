package forms

import "github.com/cenkalti/backoff/v4"

func (c *client) backOff() backoff.BackOff {
	b := backoff.NewConstantBackOff(2 * first)
	return backoff.WithMaxRetries(b, 3)
}

func (c *client) made() (string, error) {
	s, err := backoff.RetryWithData(c.fetch, c.backOff())
	if err != nil {
		return "", errFailed
	}
	return s, nil
}
