package attempt

import "errors"

// mostBehind is the number of our errors after which Behind stops. The number of paths through a tree of errors that have
// both As and Unwrap doubles with each level, and errors.As takes all of them.
const mostBehind = 1000

// probe is a target of errors.As that lists our errors, and ends the search when it has most.
type probe struct {
	error // errors.As panics for a target that is not one
	ours  []error
	most  int
}

// IsProbe reports whether target is of a search for our errors.
func IsProbe(target any) bool {
	_, ok := target.(*probe)
	return ok
}

// Found is the As method of our errors. It lists err if target is of a search for them.
func Found(target any, err error) bool {
	p, ok := target.(*probe)
	if !ok {
		return false
	}
	p.ours = append(p.ours, err)
	return len(p.ours) == p.most
}

// Leads reports whether errors.As finds one of our errors in err.
func Leads(err error) bool { return errors.As(err, &probe{most: 1}) }

// Behind returns our errors to which as leads, in the order of errors.As and as often as that comes to them. It reports
// whether these are all.
func Behind(as func(target any) bool) (ours []error, all bool) {
	p := probe{most: mostBehind}
	as(&p)
	return p.ours, len(p.ours) < p.most
}
