package migrate

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"time"

	"github.com/retrygo/retry"
)

// A cap of longest means no cap.
const longest = "1<<63 - 1"

// number is a setting. Its value is known unless loose is set.
type number struct {
	value float64
	text  string // its source; "" if it is not set
	loose bool
}

func (n number) duration() time.Duration { return time.Duration(n.value) }

func wait(d time.Duration) number { return number{value: float64(d), text: source(d)} }

// source returns d as Go source.
func source(d time.Duration) string {
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{time.Hour, "Hour"}, {time.Minute, "Minute"}, {time.Second, "Second"}, {time.Millisecond, "Millisecond"},
		{time.Microsecond, "Microsecond"}} {
		if d == unit.size {
			return "time." + unit.name
		} else if d > 0 && d%unit.size == 0 {
			return fmt.Sprintf("%d * time.%s", d/unit.size, unit.name)
		}
	}
	return fmt.Sprint(int64(d))
}

// number returns the value of e, a setting of that name; nil means unset.
func (s *site) number(p *plan, name string, e ast.Expr, unset number) number {
	if e == nil {
		return unset
	}
	value := s.pkg.TypesInfo.Types[e].Value
	if value == nil {
		if !s.movable(e) || types.TypeString(s.pkg.TypesInfo.TypeOf(e), nil) != "time.Duration" {
			p.refuse("%s is neither a constant nor a duration that keeps its value", name)
		}
		return number{text: s.text(e), loose: true}
	}
	if !within(e, s.expr) && !s.sees(e) {
		p.refuse("a name in %s, %s, means something else at the call", s.text(e), name)
	}
	x, _ := constant.Float64Val(constant.ToFloat(value))
	if x > 1<<53 || x < -1<<53 {
		p.refuse("%s is too large", name)
	}
	return number{value: x, text: s.text(e)}
}

// attempts sets MaxAttempts to e+more, unless e is nil. More is 1 if theirs counts retries; otherwise their 0 means no
// limit.
func (s *site) attempts(p *plan, e ast.Expr, more int) {
	if e == nil {
		return
	}
	if value := s.pkg.TypesInfo.Types[e].Value; value != nil {
		n, ok := constant.Int64Val(value)
		switch {
		case !ok || n < 0 || n > 1<<31-2:
			p.refuse("the number of attempts is negative or too large")
		case n == 0 && more == 0:
			p.attempts, p.retries = ours+".Unlimited", -1
		default:
			p.attempts, p.retries = fmt.Sprint(int(n)+more), int(n)+more-1
		}
		return
	}
	if !s.movable(e) {
		p.refuse("the number of attempts is neither a constant nor a variable that keeps its value")
	}
	e = ast.Unparen(e)
	if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 1 && s.pkg.TypesInfo.Types[call.Fun].IsType() {
		e = ast.Unparen(call.Args[0])
	}
	t, ok := s.pkg.TypesInfo.TypeOf(e).Underlying().(*types.Basic)
	if !ok || t.Info()&types.IsInteger == 0 {
		p.refuse("the number of attempts is not an integer")
	}
	p.attempts, p.retries = s.text(e), -1
	if s.pkg.TypesInfo.TypeOf(e) != types.Typ[types.Int] {
		p.attempts = "int(" + p.attempts + ")"
	}
	if more == 0 {
		p.remark("the number of attempts must be positive: 0 meant no limit, and means %d here", defaults.MaxAttempts)
		return
	}
	p.attempts += fmt.Sprint(" + ", more)
	p.remark("the number of retries must be from 0 to the largest int less 1")
}

var defaults = retry.Policy{}.Effective()

// grow makes the delay after the nth attempt base·factor^(n-1), but at most limit if that is set. Their jitter adds up
// to ratio of it, and may pass limit; that of p.backoff must be set already. A factor of 1 makes all delays the same.
func (p *plan) grow(base, factor, limit number, ratio float64) {
	p.texts["Base"], p.backoff.Base = base.text, base.duration()
	p.backoff.Factor = factor.value
	switch factor.value {
	case 1:
		p.backoff.Mode, p.backoff.Factor, p.texts["Mode"] = retry.Fixed, 0, ours+".Fixed"
	case 2:
	default:
		p.texts["Factor"] = factor.text
	}
	last := p.retries // the number of the longest delay
	if factor.value == 1 {
		last = min(1, max(1, p.retries))
	}
	switch {
	case limit.text != "":
		p.texts["Cap"], p.backoff.Cap = limit.text, limit.duration()
	case base.loose || last < 0 || last > 40 || last > 0 && p.uncapped(last) > defaults.Cap/2:
		p.texts["Cap"], p.backoff.Cap = longest, 1<<63-1
	}
	if base.loose || limit.loose {
		if base.loose {
			p.remark("%s must be positive: 0 means %v here", base.text, defaults.Base)
		}
		if limit.text != "" {
			p.remark("%s must not be below %s", limit.text, base.text)
		}
		return
	}
	if limit.text == "" {
		limit.value = 1<<63 - 1
	} else if limit.value < base.value {
		p.refuse("the longest delay is below the first")
	}
	if err := (retry.Policy{Backoff: p.backoff}).Validate(); err != nil {
		p.refuse("the schedule is not valid here: %v", err)
	}
	p.fits(base.value, factor.value, limit.value, ratio)
}

// uncapped returns the nth delay if there is no cap.
func (p *plan) uncapped(n int) time.Duration {
	b := p.backoff
	b.Cap = 1<<63 - 1
	return b.Delay(n)
}

// fits remarks differences between the delays of p.backoff and theirs.
func (p *plan) fits(base, factor, limit, ratio float64) {
	waits := p.retries
	if waits < 0 || waits > 200 {
		waits = 200
	}
	var worst time.Duration
	passes := false
	theirs := time.Duration(base)
	for n := 1; n <= waits && theirs < 1<<61; n++ { // a longer delay takes centuries
		mine := p.backoff.Delay(n)
		worst = max(worst, mine-theirs, theirs-mine)
		passes = passes || ratio > 0 && float64(theirs)*(1+ratio) > float64(retry.Policy{Backoff: p.backoff}.Effective().Cap)
		if next := float64(theirs) * factor; next < limit { // rounded at each step, as in theirs
			theirs = time.Duration(next)
		} else {
			theirs = time.Duration(min(limit, 1<<62))
		}
	}
	switch {
	case worst > time.Microsecond:
		p.refuse("the waits would differ by %v", worst)
	case worst > 0 && ratio == 0:
		p.remark("waits differ by rounding, up to %v", worst)
	}
	if passes {
		p.remark("jitter stays below Cap, which it passed before")
	}
}
