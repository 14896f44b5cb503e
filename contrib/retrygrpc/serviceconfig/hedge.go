package serviceconfig

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
	"github.com/retrygo/retry/retryexport"
	"github.com/retrygo/retry/retryhedge"
)

// hedgingPolicy is that of gRFC A6.
type hedgingPolicy struct {
	MaxAttempts         int      `json:"maxAttempts"`
	HedgingDelay        string   `json:"hedgingDelay,omitempty"`
	NonFatalStatusCodes []string `json:"nonFatalStatusCodes,omitempty"`
}

// HedgesOf returns h as the hedgingPolicy of a service config, for clients that have hedging: grpc-go does not, and
// ignores it. lost is as for Of. It omits what gRPC does under every such config: a failure with one of the codes starts
// the next call at once; the calls carry different numbers in grpc-previous-rpc-attempts. o is as for Of, whose Codes are
// those that do not end the other calls. A policy without hedges is refused, as h.Validate and o.Validate refuse others.
func HedgesOf(h retryhedge.Policy, o Options) (config string, lost []string, err error) {
	var bad retry.FieldErrors
	bad.Append(h.Validate())
	bad.Append(o.Validate())
	if bad == nil && h.Off() {
		bad.Refuse("retryhedge.Policy.Delay", h.Delay, "makes no hedges")
	}
	if bad != nil {
		return "", nil, bad
	}
	x := newExport(retry.Policy{Classify: h.Classify}, o)
	calls, delay := cmp.Or(h.MaxCalls, 2), h.Delay
	say := func(field string, value any, instead string) {
		lost = append(lost, fmt.Sprintf("%s %v: %s", field, value, instead))
	}
	if h.Name != "" {
		say("Name", h.Name, "a service config has no place for it")
	}
	if h.Tracker != nil {
		delay = h.Tracker.Delay()
		say("Tracker", h.Tracker, "the delay stays that of now, "+retryexport.Short(delay))
	}
	if calls > mostAttempts {
		say("MaxCalls", calls, fmt.Sprintf("the client makes %d, which is its limit", mostAttempts))
		calls = mostAttempts
	}
	if h.Budget != nil {
		say("Budget", "is set", "its figures cannot be read, and so hedges are free without Options.Budget")
	}
	if h.Classify != nil {
		say("Classify", "is set", "gRPC judges by the code alone, and these do not end the other calls: "+strings.Join(namesOf(x.codes), " "))
	}
	if h.Observe != nil {
		say("Observe", "is set", "it is not called")
	}
	lost = append(lost, lostBudget(o.Budget)...)
	return o.config(nil, &hedgingPolicy{calls, seconds(delay), namesOf(x.codes)}), lost, nil
}

// ParseHedges returns the hedgingPolicy that a service config has for a method, "/package.Service/Method": of the
// method's own name, or else of its service, or else of all. Its Classify judges errors with a status. ok is false if the
// method has none. An error says what is wrong with the config, as far as it is read.
func ParseHedges(config, method string) (h retryhedge.Policy, ok bool, err error) {
	var parsed serviceConfig
	if err := json.Unmarshal([]byte(config), &parsed); err != nil {
		return h, false, fmt.Errorf("serviceconfig: ParseHedges: %w", err)
	}
	name, named := nameOf(method)
	if !named {
		var bad retry.FieldErrors
		bad.Refuse("serviceconfig.ParseHedges.method", strconv.Quote(method), "is not of the form /package.Service/Method")
		return h, false, bad
	}
	for _, wanted := range []methodName{name, {Service: name.Service}, {}} {
		for _, m := range parsed.MethodConfig {
			if slices.Contains(m.Name, wanted) {
				if m.HedgingPolicy == nil {
					return h, false, nil
				}
				h, err = m.HedgingPolicy.parse()
				return h, err == nil, err
			}
		}
	}
	return h, false, nil
}

// parse refuses what gRFC A6 does, and takes a maxAttempts above 5 as 5.
func (p *hedgingPolicy) parse() (h retryhedge.Policy, err error) {
	var bad retry.FieldErrors
	if p.MaxAttempts < 2 {
		bad.Refuse("serviceconfig.hedgingPolicy.maxAttempts", p.MaxAttempts, "is below 2")
	}
	if p.HedgingDelay != "" {
		h.Delay, err = time.ParseDuration(p.HedgingDelay)
		if err != nil || h.Delay < 0 || !strings.HasSuffix(p.HedgingDelay, "s") || strings.ContainsAny(p.HedgingDelay, "hmnuµ") {
			bad.Refuse("serviceconfig.hedgingPolicy.hedgingDelay", strconv.Quote(p.HedgingDelay), `is not a number of seconds such as "0.05s"`)
		}
	}
	h.Delay = max(h.Delay, 1) // gRPC starts all calls at once; a Delay of 0 would mean no hedges
	h.MaxCalls = min(p.MaxAttempts, mostAttempts)
	var nonFatal []codes.Code
	for i, text := range p.NonFatalStatusCodes {
		var code codes.Code
		if err := code.UnmarshalJSON([]byte(strconv.Quote(strings.ToUpper(text)))); err != nil {
			bad.Refuse(fmt.Sprintf("serviceconfig.hedgingPolicy.nonFatalStatusCodes[%d]", i), strconv.Quote(text), "is not a code")
		}
		nonFatal = append(nonFatal, code)
	}
	h.Classify = retry.FirstOf(retrygrpc.OnCode(retry.Retryable, nonFatal...), retry.Otherwise(retry.Terminal))
	return h, bad.Err()
}
