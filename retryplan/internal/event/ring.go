package event

// Ring is a queue, first in, first out. The zero Ring is empty.
type Ring[T any] struct {
	buf  []T // as long as a power of two
	head int
	n    int
}

// First and Last must not be called on an empty Ring; nor must Pop and PopLast.
func (r *Ring[T]) First() *T { return &r.buf[r.head] }

// Last is the newest.
func (r *Ring[T]) Last() *T { return r.At(r.n - 1) }

// At returns that which comes i after the first. There must be so many.
func (r *Ring[T]) At(i int) *T { return &r.buf[(r.head+i)&(len(r.buf)-1)] }

// Push adds the last.
func (r *Ring[T]) Push(x T) {
	if r.n == len(r.buf) {
		r.grow()
	}
	r.buf[(r.head+r.n)&(len(r.buf)-1)] = x
	r.n++
}

func (r *Ring[T]) grow() {
	grown := make([]T, max(16, 2*len(r.buf)))
	copied := copy(grown, r.buf[r.head:])
	copy(grown[copied:], r.buf[:r.head])
	r.buf, r.head = grown, 0
}

// Pop takes the first out.
func (r *Ring[T]) Pop() T {
	x := r.buf[r.head]
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
	return x
}

// PopLast takes the last out.
func (r *Ring[T]) PopLast() T {
	x := *r.Last()
	r.n--
	return x
}

// Len returns how many there are.
func (r *Ring[T]) Len() int { return r.n }

// Clear takes all out.
func (r *Ring[T]) Clear() { r.n = 0 }
