package wire

import (
	"fmt"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryplan"
)

// Chain is services that call each other.
type Chain struct {
	Layers     []Layer  `json:"layers"` // from the user's down
	PassOn     bool     `json:"pass_on,omitzero"`
	DoNotRetry bool     `json:"do_not_retry,omitzero"`
	Deadline   Duration `json:"deadline,omitzero"`
	Rate       float64  `json:"rate,omitzero"`
	Trigger    Trigger  `json:"trigger,omitzero"` // from is not used; none is none
}

// Layer is a node of a chain and the calls to it.
type Layer struct {
	Policy   retryconf.Spec `json:"policy"`
	Budget   *Budget        `json:"budget,omitempty"`
	Clients  int            `json:"clients,omitzero"`
	Failure  float64        `json:"failure,omitzero"`
	Capacity float64        `json:"capacity,omitzero"`
	Workers  int            `json:"workers,omitzero"`
}

// Chain returns c as retryplan has it.
func (c Chain) Chain() (retryplan.Chain, error) {
	var bad retry.FieldErrors
	chain := retryplan.Chain{PassOn: c.PassOn, DoNotRetry: c.DoNotRetry, Deadline: time.Duration(c.Deadline), Rate: c.Rate}
	if c.Trigger.Kind != "" {
		trigger, err := c.Trigger.Trigger()
		bad.Append(err)
		chain.Trigger = trigger
	}
	for i, l := range c.Layers {
		p, err := l.Policy.Policy()
		if err != nil {
			bad.Append(fmt.Errorf("layers[%d].policy: %w", i, err))
		}
		chain.Layers = append(chain.Layers, retryplan.Layer{
			Policy: p, Budget: l.Budget.Config(), Clients: l.Clients, Failure: l.Failure, Capacity: l.Capacity, Workers: l.Workers,
		})
	}
	return chain, bad.Err()
}

// ChainCertificate says how layers multiply, and whether a chain survives its trigger.
type ChainCertificate struct {
	Nodes           []NodeLoad `json:"nodes"`
	Success         float64    `json:"success"`
	Stored          float64    `json:"stored"`
	Stability       string     `json:"verdict,omitempty"` // none without a rate and a capacity
	Law             string     `json:"law,omitempty"`
	Weakest         int        `json:"weakest,omitempty"` // from 1
	HiddenCapacity  float64    `json:"hidden_capacity,omitempty"`
	RecoverySeconds *float64   `json:"recovery_seconds"` // null: never
}

// NodeLoad is how many attempts reach a node for one run of the user.
type NodeLoad struct {
	Calm           float64 `json:"calm"`
	Outage         float64 `json:"outage"`
	Hang           float64 `json:"hang"`
	HiddenCapacity float64 `json:"hidden_capacity,omitempty"`
}

// NewChainCertificate returns c as data.
func NewChainCertificate(c *retryplan.ChainCertificate) ChainCertificate {
	out := ChainCertificate{
		Success: c.Success, Stored: c.Stored, Stability: c.Stability.String(), HiddenCapacity: c.HiddenCapacity,
	}
	for _, n := range c.Nodes {
		out.Nodes = append(out.Nodes, NodeLoad(n))
	}
	if c.Stability != 0 {
		out.Law, out.Weakest, out.RecoverySeconds = c.Law.String(), c.Weakest+1, never(c.Recovery)
	}
	return out
}
