// Package mailer sends mail through a relay that sometimes fails. Its tests are the example. They check a policy's
// arithmetic without a clock, and the exact times at which a function retries in virtual time, without sleeping.
package mailer

import (
	"context"
	"errors"
	"net/textproto"
	"time"

	"github.com/retrygo/retry"
)

// Message is one mail.
type Message struct {
	ID string // the same on every attempt, so a receiver recognizes a repeated mail
	To string
}

// Mailer sends messages. It is safe for concurrent use if Deliver is.
type Mailer struct {
	// Deliver makes one attempt to pass m to the relay. attempt counts from 1 and is meant for logs.
	Deliver func(ctx context.Context, m Message, attempt int) error
	// Policy overrides the fields of Delivery that it sets. Zero means Delivery unchanged.
	Policy retry.Policy
}

// Delivery returns the policy that Send follows. It makes 6 attempts within two and a half minutes of waiting.
func Delivery() retry.Policy {
	return retry.Policy{
		Name:           "delivery",
		MaxAttempts:    6,
		Backoff:        retry.Backoff{Base: 5 * time.Second, Cap: time.Minute, Jitter: retry.RatioJitter},
		AttemptTimeout: 30 * time.Second,
		Classify:       retry.StopIf(refused),
	}
}

// Send delivers m and tries again if the relay may accept it later. On failure it returns an *retry.Error.
func (m Mailer) Send(ctx context.Context, message Message) error {
	return retry.Do(ctx, m.Policy.Or(Delivery()), func(ctx context.Context) error {
		return m.Deliver(ctx, message, retry.AttemptNumber(ctx))
	})
}

// refused reports whether the relay refused the mail permanently, by a reply of 5yz (RFC 5321, section 4.2.1), as
// net/smtp returns it.
func refused(err error) bool {
	var reply *textproto.Error
	return errors.As(err, &reply) && reply.Code >= 500
}
