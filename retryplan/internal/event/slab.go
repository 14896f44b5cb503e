package event

import "slices"

// Slab keeps values in numbered places that are used again.
type Slab[T any] struct {
	places []T
	unused []uint32
}

// At returns the value at a place.
func (s *Slab[T]) At(i uint32) *T { return &s.places[i] }

// Take returns a place that is not used, with any value.
func (s *Slab[T]) Take() uint32 {
	if n := len(s.unused); n > 0 {
		i := s.unused[n-1]
		s.unused = s.unused[:n-1]
		return i
	}
	var zero T
	s.places = append(s.places, zero)
	return uint32(len(s.places) - 1)
}

// Reserve makes room for n values.
func (s *Slab[T]) Reserve(n int) { s.places = slices.Grow(s.places, n) }

// Release gives a place back.
func (s *Slab[T]) Release(i uint32) { s.unused = append(s.unused, i) }

// Len returns how many places are in use.
func (s *Slab[T]) Len() int { return len(s.places) - len(s.unused) }
