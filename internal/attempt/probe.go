package attempt

// Probe is a target of errors.As that looks for all of our errors: each calls Visit with itself and returns its result.
type Probe struct {
	error // errors.As panics for a target that is not one
	Visit func(error) (enough bool)
}

// Visited is the As method of our errors.
func Visited(target any, err error) bool {
	p, ok := target.(*Probe)
	return ok && p.Visit(err)
}
