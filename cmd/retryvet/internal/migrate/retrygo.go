package migrate

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"time"

	"github.com/retrygo/retry"
)

var retryGoV4 = &library{
	name:  "retry-go/v4",
	marks: []string{"Unrecoverable", "IsRecoverable"},
	marky: map[string]string{"Unrecoverable": "Permanent"},
	calls: map[string]int{"Do": 0, "DoWithData": 0},
}

var retryGoV5 = &library{
	name:  "retry-go/v5",
	marks: []string{"Unrecoverable", "IsRecoverable"},
	marky: map[string]string{"Unrecoverable": "Permanent"},
	calls: map[string]int{"Retrier.Do": 0, "RetrierWithData.Do": 0},
}

func init() { retryGoV4.plan, retryGoV5.plan = (*site).retryGo, (*site).retryGo }

func (s *site) retryGo(p *plan) error {
	if err := s.knownMarks(); err != nil {
		return err
	}
	for _, m := range s.marks() {
		call, ok := s.parents[s.parents[m]].(*ast.CallExpr)
		if !ok || !s.failed(call) {
			return refuse("Unrecoverable(nil) is an error and Permanent(nil) is nil: the error here may be nil")
		}
	}
	options := s.call
	if s.lib == retryGoV5 {
		sel, ok := ast.Unparen(s.call.Fun).(*ast.SelectorExpr)
		if ok {
			options, ok = ast.Unparen(sel.X).(*ast.CallExpr)
		}
		if !ok || s.ofLibrary(options) != "New" && s.ofLibrary(options) != "NewWithData" {
			return refuse("the Retrier is not made in the same expression")
		}
	}
	if options.Ellipsis.IsValid() {
		return refuse("its options are a variable")
	}
	args := options.Args
	if s.lib == retryGoV4 {
		args = args[1:]
	}
	p.value = s.name == "DoWithData" || s.name == "RetrierWithData.Do"
	p.attempts, p.retries, p.classify = "10", 9, s.canceled()
	delay, limit, kind, lastOnly := wait(100*time.Millisecond), number{}, "", false
	var onRetry ast.Expr
	seen := map[string]bool{}
	for _, arg := range args {
		option, ok := ast.Unparen(arg).(*ast.CallExpr)
		if !ok || seen[s.ofLibrary(option)] {
			return refuse("an option is not made here, or twice")
		}
		name := s.ofLibrary(option)
		seen[name] = true
		var err error
		switch name {
		case "Attempts":
			if value, _ := s.constant("Attempts", option.Args[0]); value.text != "" && value.value == 0 {
				p.attempts, p.retries = ours+".Unlimited", -1
				break
			}
			err = s.attemptsFor(p, option.Args[0], 0)
		case "UntilSucceeded":
			p.attempts, p.retries = ours+".Unlimited", -1
		case "Delay":
			delay, err = s.constant("Delay", option.Args[0])
		case "MaxDelay":
			limit, err = s.constant("MaxDelay", option.Args[0])
		case "Context":
			if !s.isBackground(option.Args[0]) {
				p.ctx = option.Args[0]
			}
		case "LastErrorOnly":
			value := s.pkg.TypesInfo.Types[option.Args[0]].Value
			if value == nil {
				return refuse("LastErrorOnly is not a constant")
			}
			lastOnly = constant.BoolVal(value)
		case "DelayType":
			if kind = s.delayType(option.Args[0]); kind == "" {
				err = refuse("the delay is a function other than FixedDelay, BackOffDelay and FullJitterBackoffDelay")
			}
		case "OnRetry":
			onRetry = option.Args[0]
		case "RetryIf":
			if len(s.marks()) > 0 {
				return refuse("RetryIf takes the place of Unrecoverable, and Permanent goes before it")
			}
			p.classify = ours + ".FirstOf(" + ours + ".RetryIf(" + s.text(option.Args[0]) + "), " + ours + ".Otherwise(" + ours + ".Terminal))"
		default:
			err = refuse("the option %s has no counterpart", s.text(option.Fun))
		}
		if err != nil {
			return err
		}
	}
	switch {
	case kind == "":
		return refuse("the default jitter, up to 100ms more, has no counterpart; a DelayType without it would have one")
	case delay.value <= 0 || limit.value < 0:
		return refuse("Delay or MaxDelay is not positive")
	case limit.value > 0 && limit.value < delay.value:
		return refuse("MaxDelay is below Delay")
	case p.attempts == ours+".Unlimited" && seen["RetryIf"]:
		return refuse("without a limit, Unrecoverable counts beside RetryIf")
	}
	if err := s.errorUse(); err != nil {
		return err
	} else if s.escapes && !lastOnly {
		return refuse("the errors of all attempts are seen, and retry keeps the last: LastErrorOnly(true) would say so")
	}
	if p.value {
		p.remark("beside an error, the value is that of the last attempt")
	}
	p.backoff = retry.Backoff{Base: delay.duration(), Cap: limit.duration()}
	p.texts["Base"], p.texts["Cap"] = delay.text, limit.text
	switch kind {
	case "FixedDelay":
		p.backoff.Mode, p.texts["Mode"] = retry.Fixed, ours+".Fixed"
	case "FullJitterBackoffDelay":
		if limit.value > 0 && limit.value < 2*delay.value {
			return refuse("MaxDelay is below the first window, which is twice Delay")
		}
		p.backoff.Base, p.texts["Base"] = 2*delay.duration(), "2 * ("+delay.text+")"
		p.backoff.Jitter, p.texts["Jitter"] = retry.FullJitter, ours+".FullJitter"
	}
	if limit.value == 0 && kind != "FixedDelay" && !p.within(time.Hour) {
		p.backoff.Cap, p.texts["Cap"] = 1<<62, longest
	} else if limit.value == 0 {
		p.texts["Cap"] = ""
	}
	base, growth := p.backoff.Base, kind != "FixedDelay"
	if err := p.fits(func(n int) time.Duration {
		d := base
		for i := 1; growth && i < n && d < 1<<61; i++ {
			d <<= 1
		}
		if limit.value > 0 {
			d = min(d, limit.duration())
		}
		if d >= 1<<61 { // centuries
			return p.backoff.Delay(n)
		}
		return d
	}, 0); err != nil {
		return err
	}
	if onRetry != nil {
		return s.observer(p, onRetry, "%s.Outcome == nil && %s.Decision.Class == "+ours+".Retryable",
			"uint(%s.Attempt.Number-1)", "%s.Attempt.Err")
	}
	return nil
}

// delayType returns the name of the library's delay function e, or "".
func (s *site) delayType(e ast.Expr) string {
	sel, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	fn, ok := s.pkg.TypesInfo.Uses[sel.Sel].(*types.Func)
	if !ok || fn.Pkg() == nil || libraries[fn.Pkg().Path()] != s.lib {
		return ""
	}
	switch fn.Name() {
	case "FixedDelay", "BackOffDelay", "FullJitterBackoffDelay":
		return fn.Name()
	}
	return ""
}

// failed reports whether the argument of mark is an error that cannot be nil there.
func (s *site) failed(mark *ast.CallExpr) bool {
	if len(mark.Args) != 1 {
		return false
	}
	arg := ast.Unparen(mark.Args[0])
	if call, ok := arg.(*ast.CallExpr); ok {
		fn := s.callee(call)
		return fn != nil && (fn.FullName() == "errors.New" || fn.FullName() == "fmt.Errorf")
	}
	id, ok := arg.(*ast.Ident)
	if !ok {
		return false
	}
	obj := s.pkg.TypesInfo.Uses[id]
	for n := ast.Node(mark); n != nil; n = s.parents[n] {
		branch, ok := s.parents[n].(*ast.IfStmt)
		if _, isLit := n.(*ast.FuncLit); isLit {
			return false
		}
		if ok && branch.Body == n && s.refutes(branch.Cond, obj) {
			stmt, _ := s.statement(mark)
			for _, use := range s.uses(obj) {
				write, address := s.write(use)
				if address || write && branch.Body.Pos() <= use.Pos() && use.Pos() < stmt.Pos() {
					return false
				}
			}
			return true
		}
	}
	return false
}

// refutes reports whether cond holds only if obj, an error, is not nil.
func (s *site) refutes(cond ast.Expr, obj types.Object) bool {
	is := func(e ast.Expr) bool {
		id, ok := ast.Unparen(e).(*ast.Ident)
		return ok && s.pkg.TypesInfo.Uses[id] == obj
	}
	switch cond := ast.Unparen(cond).(type) {
	case *ast.BinaryExpr:
		switch cond.Op {
		case token.LAND:
			return s.refutes(cond.X, obj) || s.refutes(cond.Y, obj)
		case token.LOR:
			return s.refutes(cond.X, obj) && s.refutes(cond.Y, obj)
		case token.NEQ:
			return is(cond.X) && s.pkg.TypesInfo.Types[cond.Y].IsNil()
		}
	case *ast.CallExpr:
		fn := s.callee(cond)
		return fn != nil && len(cond.Args) == 2 && is(cond.Args[0]) &&
			(fn.FullName() == "errors.As" || fn.FullName() == "errors.Is" && !s.pkg.TypesInfo.Types[cond.Args[1]].IsNil())
	}
	return false
}
