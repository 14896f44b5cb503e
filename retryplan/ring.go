package retryplan

// ring is a queue, first in, first out. The zero ring is empty.
type ring[T any] struct {
	buf  []T // as long as a power of two
	head int
	n    int
}

// first and last must not be called on an empty ring; nor must pop and popLast.
func (r *ring[T]) first() *T { return &r.buf[r.head] }
func (r *ring[T]) last() *T  { return &r.buf[(r.head+r.n-1)&(len(r.buf)-1)] }

func (r *ring[T]) push(x T) {
	if r.n == len(r.buf) {
		r.grow()
	}
	r.buf[(r.head+r.n)&(len(r.buf)-1)] = x
	r.n++
}

func (r *ring[T]) grow() {
	grown := make([]T, max(16, 2*len(r.buf)))
	copied := copy(grown, r.buf[r.head:])
	copy(grown[copied:], r.buf[:r.head])
	r.buf, r.head = grown, 0
}

func (r *ring[T]) pop() T {
	x := r.buf[r.head]
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
	return x
}

func (r *ring[T]) popLast() T {
	x := *r.last()
	r.n--
	return x
}
