package event

// Slab keeps values in numbered places that are used again. It never moves a value. A million clients in a storm have
// gigabytes of them, which doubling an array would copy and clear time and again.
type Slab[T any] struct {
	blocks []*[block]T
	places uint32 // taken so far
	unused []uint32
}

// block is how many places are made at once.
const block = 1 << 10

// At returns the value at a place.
func (s *Slab[T]) At(i uint32) *T { return &s.blocks[i/block][i%block] }

// Take returns a place that is not used, with any value.
func (s *Slab[T]) Take() uint32 {
	if n := len(s.unused); n > 0 {
		i := s.unused[n-1]
		s.unused = s.unused[:n-1]
		return i
	}
	if s.places%block == 0 {
		s.blocks = append(s.blocks, new([block]T))
	}
	s.places++
	return s.places - 1
}

// Release gives a place back.
func (s *Slab[T]) Release(i uint32) { s.unused = append(s.unused, i) }

// Len returns the number of places in use.
func (s *Slab[T]) Len() int { return int(s.places) - len(s.unused) }
