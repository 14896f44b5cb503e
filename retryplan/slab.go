package retryplan

import "slices"

// slab keeps values in numbered places that are used again.
type slab[T any] struct {
	places []T
	unused []uint32
}

func (s *slab[T]) at(i uint32) *T { return &s.places[i] }

func (s *slab[T]) take() uint32 {
	if n := len(s.unused); n > 0 {
		i := s.unused[n-1]
		s.unused = s.unused[:n-1]
		return i
	}
	var zero T
	s.places = append(s.places, zero)
	return uint32(len(s.places) - 1)
}

// reserve makes room for n values.
func (s *slab[T]) reserve(n int) { s.places = slices.Grow(s.places, n) }

func (s *slab[T]) release(i uint32) { s.unused = append(s.unused, i) }
