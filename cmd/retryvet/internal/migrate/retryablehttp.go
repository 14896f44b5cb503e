package migrate

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"time"
)

var retryableHTTP = &library{
	name: "go-retryablehttp",
	calls: map[string]int{"Client.StandardClient": -1, "RoundTripper": -1, "Client.Do": -1, "Client.Get": -1, "Client.Head": -1,
		"Client.Post": -1, "Client.PostForm": -1, "Get": -1, "Head": -1, "Post": -1, "PostForm": -1},
	fields: []string{"HTTPClient", "HTTPClient.Transport", "HTTPClient.Timeout", "RetryMax", "RetryWaitMin", "RetryWaitMax",
		"Logger", "CheckRetry", "Backoff", "ErrorHandler"},
}

func init() { retryableHTTP.plan, retryableHTTP.pause = (*site).retryableHTTP, (*site).retryableClient }

// retryableClient returns the state of e, an expression of type *Client that is not a variable.
func (s *site) retryableClient(_ *plan, e ast.Expr) (*pause, error) {
	if call, ok := e.(*ast.CallExpr); ok && s.ofLibrary(call) == "NewClient" {
		return &pause{set: map[string]ast.Expr{}}, nil
	}
	return nil, refuse("its Client is not made here")
}

// retryableHTTP makes a Transport of a client that is used through net/http only.
func (s *site) retryableHTTP(p *plan) error {
	state := &pause{set: map[string]ast.Expr{}}
	var err error
	switch s.name {
	case "Client.StandardClient":
		sel, ok := ast.Unparen(s.call.Fun).(*ast.SelectorExpr)
		if !ok {
			return refuse("its Client is not known")
		}
		if state, err = s.follow(p, sel.X); err != nil {
			return err
		}
	case "RoundTripper":
		lit := s.expr.(*ast.UnaryExpr).X.(*ast.CompositeLit)
		for _, e := range lit.Elts {
			pair, ok := e.(*ast.KeyValueExpr)
			if !ok {
				return refuse("its Client is not known")
			}
			if state, err = s.follow(p, pair.Value); err != nil {
				return err
			}
		}
	default:
		return refuse("its requests and clients are types of go-retryablehttp, which code elsewhere names: " +
			"StandardClient makes a client that can be moved")
	}
	for _, name := range []string{"CheckRetry", "Backoff", "ErrorHandler"} {
		e := state.set[name]
		if e != nil && !slices.Contains([]string{"DefaultRetryPolicy", "DefaultBackoff", "PassthroughErrorHandler"}, s.function(e)) {
			return refuse("the %s is a custom function", name)
		}
	}
	if state.set["ErrorHandler"] == nil {
		p.remark("when the attempts are used up, the last response is the answer, without an error: check its status")
	}
	p.remark("Retry-After is obeyed with every status that is repeated, but never cuts a wait short, and ends the run beyond MaxHint")
	p.remark("a wait past the deadline of the request is not begun, and a redirect is a run of its own")
	if e := state.set["Logger"]; e == nil || !s.pkg.TypesInfo.Types[e].IsNil() {
		p.remark("attempts are not logged: set Policy.Observe, for example by package retryslog")
		if e != nil && !s.spare(e) {
			return refuse("the Logger is a variable for this client only")
		}
	}
	p.attempts, p.retries = "5", 4
	s.attempts(p, state.set["RetryMax"], 1)
	base := s.number(p, "RetryWaitMin", state.set["RetryWaitMin"], wait(time.Second))
	limit := s.number(p, "RetryWaitMax", state.set["RetryWaitMax"], wait(30*time.Second))
	if !base.loose && base.value <= 0 {
		return refuse("RetryWaitMin is not positive")
	}
	p.grow(base, number{value: 2}, limit, 0)
	return s.base(p, state)
}

// spare reports whether e can be removed without leaving a variable unused.
func (s *site) spare(e ast.Expr) bool {
	for n := range ast.Preorder(e) {
		if id, ok := n.(*ast.Ident); ok {
			obj, ok := s.pkg.TypesInfo.Uses[id].(*types.Var)
			if ok && s.definition(obj) != nil && len(s.uses(obj)) == 1 {
				return false
			}
		}
	}
	return true
}

// base sets the Base and the AttemptTimeout from the client that sends the requests.
func (s *site) base(p *plan, state *pause) error {
	transport, timeout := state.set["HTTPClient.Transport"], state.set["HTTPClient.Timeout"]
	whole := state.set["HTTPClient"]
	if address, ok := whole.(*ast.UnaryExpr); ok {
		lit, ok := address.X.(*ast.CompositeLit)
		if !ok {
			return refuse("the HTTPClient is not known")
		}
		whole = nil
		for _, elt := range lit.Elts {
			pair, ok := elt.(*ast.KeyValueExpr)
			if !ok {
				return refuse("the HTTPClient is not known")
			}
			switch name := s.text(pair.Key); {
			case name == "Transport" && transport == nil:
				transport = pair.Value
			case name == "Timeout" && timeout == nil:
				timeout = pair.Value
			default:
				return refuse("the field %s of HTTPClient has no counterpart", name)
			}
		}
	}
	limit := s.number(p, "Timeout", timeout, number{})
	switch {
	case whole != nil:
		if transport != nil || timeout != nil || !s.movable(whole) || !simple(whole) {
			return refuse("the HTTPClient is not a variable that keeps its value")
		}
		client := s.text(whole)
		p.base, p.timeout = client+".Transport", client+".Timeout"
		p.remark("%s must not be nil, and its Jar and CheckRedirect are not used", client)
	case transport == nil:
		p.remark("connections are those of http.DefaultTransport: set Base for a pool of its own")
	case !s.movable(transport):
		return refuse("the Transport is not a variable that keeps its value")
	default:
		p.base = s.text(transport)
	}
	if limit.loose || limit.value > 0 {
		p.timeout = limit.text
	}
	if p.timeout != "" {
		p.remark("AttemptTimeout ends with the response's headers: the Timeout of the http.Client covers its body too")
	}
	return nil
}

// simple reports whether e is a variable or a field of one.
func simple(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return true
	case *ast.SelectorExpr:
		return simple(e.X)
	}
	return false
}

// clientEdits returns the edits that replace s by p.
func (s *site) clientEdits(p *plan) ([]edit, error) {
	if err := s.comments(p); err != nil {
		return nil, err
	}
	name := s.importName("net/http")
	if name == "" {
		name = "http"
	}
	if !s.free(name, "net/http") {
		return nil, refuse("the name %s does not mean the package here", name)
	}
	p.classify = fmt.Sprintf("%s.FirstOf(%s, %s.OnStatus(%[1]s.Terminal, %[4]s.StatusRequestTimeout, %[4]s.StatusNotImplemented))",
		ours, p.classify, oursHTTP, name)
	var b strings.Builder
	b.WriteString("&" + oursHTTP + ".Transport{\n")
	if p.base != "" {
		b.WriteString("Base: " + p.base + ",\n")
	}
	b.WriteString("Policy: " + p.literal() + ",\n")
	b.WriteString("Repeat: func(*" + oursHTTP + ".AttemptError) bool { return true }, // as before, a POST is sent again as well\n")
	b.WriteString("BufferBody: 1 << 62, // as before, any body is read into memory\n}")
	text := b.String()
	if s.name == "Client.StandardClient" {
		text = "&" + name + ".Client{Transport: " + text + "}"
	}
	return s.remarked(p, edit{s.offset(s.expr.Pos()), s.offset(s.expr.End()), text}), nil
}
