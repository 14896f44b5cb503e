package retry_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
)

// node is an error that is known to be made of others.
type node struct {
	err  error
	kind kind
	hint time.Duration
	in   []*node // in the order of errors.Is
}

type kind byte

const (
	permanent kind = iota
	transient
	ambiguous
	busy
	progressed
	joined
	wrapped
	listed
	hidden
	twice
	nested
	late
	canceled
	kinds
	flaky
)

func (n *node) String() string {
	names := [...]string{"Permanent", "Transient", "Ambiguous", "After", "Progressed", "join", "wrap", "list", "opaque", "both", "run", "timeout",
		"canceled", "", "flaky"}
	if len(n.in) == 0 {
		return names[n.kind]
	}
	return fmt.Sprint(names[n.kind], n.in)
}

// grow makes errors from bytes, each of which wraps one or two of those before it, and returns the last one.
func grow(seed []byte) *node {
	nodes := []*node{{err: errFlaky, kind: flaky}}
	for ; len(seed) >= 2; seed = seed[2:] {
		left := nodes[int(seed[1]&15)%len(nodes)]
		right := nodes[int(seed[1]>>4)%len(nodes)]
		n := &node{kind: kind(seed[0]) % kinds, in: []*node{left}}
		switch n.kind {
		case permanent:
			n.err = retry.Permanent(left.err)
		case transient:
			n.err = retry.Transient(left.err)
		case ambiguous:
			n.err = retry.Ambiguous(left.err)
		case busy:
			n.hint = time.Duration(len(seed)) * sec
			n.err = retry.After(n.hint, left.err)
		case progressed:
			n.err = retry.Progressed(left.err)
		case joined:
			n.err = errors.Join(left.err, right.err)
			n.in = append(n.in, right)
		case wrapped:
			n.err = fmt.Errorf("x: %w", left.err)
		case listed:
			n.err = multi{left.err, right.err}
			n.in = append(n.in, right)
		case hidden:
			n.err = opaque{left.err}
		case twice:
			n.err = both{left.err}
			n.in = append(n.in, left)
		case nested:
			n.err = runOf(left.err)
		case late:
			if !errors.Is(left.err, context.Canceled) {
				continue // MarkTimeout would return it as it is
			}
			n.err = retryshell.MarkTimeout(left.err)
		case canceled:
			n.err, n.in = context.Canceled, nil
		}
		nodes = append(nodes, n)
	}
	return nodes[len(nodes)-1]
}

// ours reports whether the package finds an error of its own in n by errors.As.
func (n *node) ours() bool {
	return n.isOurs() || slices.ContainsFunc(n.in, (*node).ours)
}

func (n *node) isOurs() bool { return n.kind <= progressed || n.kind == nested || n.kind == late }

// bare reports whether there is a cancellation in n that is under none of our errors.
func (n *node) bare() bool {
	return n.kind == canceled || !n.isOurs() && slices.ContainsFunc(n.in, (*node).bare)
}

// unclear reports whether a cancellation is beside one of our errors behind Is and As alone, which do not show whose it is.
func (n *node) unclear() bool {
	behind := n.kind == listed || n.kind == hidden
	return slices.ContainsFunc(n.in, func(in *node) bool { return behind && in.ours() && in.bare() || in.unclear() })
}

// walked is the result of a walk over every path from an error to what it is made of.
type walked struct {
	class      retry.Class
	hint       time.Duration
	below      time.Duration
	ambiguous  bool
	progressed bool
	canceled   bool
	paths      int
}

// place is what is around an error on a path.
type place struct{ inRun, underTransient, timedOut bool }

func (w *walked) walk(n *node, at place) {
	if len(n.in) == 0 {
		w.paths++
	}
	class := map[kind]retry.Class{permanent: retry.Terminal, ambiguous: retry.Terminal, transient: retry.Retryable}[n.kind]
	if at.inRun {
		w.below = max(w.below, n.hint)
	} else {
		w.hint = max(w.hint, n.hint)
		w.progressed = w.progressed || n.kind == progressed
		w.canceled = w.canceled || n.kind == canceled && !at.timedOut
		if w.class == retry.Unknown {
			w.class = class
		}
	}
	w.ambiguous = w.ambiguous || n.kind == ambiguous && !at.underTransient
	at.inRun = at.inRun || n.kind == nested
	at.underTransient = at.underTransient || n.kind == transient
	at.timedOut = at.timedOut || n.kind == late
	for _, in := range n.in {
		w.walk(in, at)
	}
}

// agreesOnEveryPath compares what the package finds in an error with a walk over all paths.
func agreesOnEveryPath(t *testing.T, n *node) (want walked) {
	want.walk(n, place{})
	if want.paths > 400 {
		return want // the search can stop at the thousandth mark
	}
	got := want
	got.ambiguous = retry.IsAmbiguous(n.err)
	class, hint := retry.Policy{}.Judge(n.err)
	got.hint = hint
	p := retry.Policy{MaxAttempts: retry.Unlimited}
	got.progressed = p.Decide(retry.Progress{Attempt: 3, Class: retry.Retryable}, n.err, 0).Forgiven == 2
	require.Equal(t, want, got, "%v", n)
	switch {
	case want.ambiguous:
		require.Equal(t, retry.Terminal, class, "%v", n)
	case want.class != retry.Unknown:
		require.Equal(t, want.class, class, "%v", n)
	case !n.unclear():
		require.Equal(t, want.canceled, class == retry.Terminal, "%v", n)
	}
	require.Equal(t, cmp.Or(want.hint, want.below), (&retry.Error{Last: n.err}).Hint(), "%v", n)
	return want
}

func FuzzMarks(f *testing.F) {
	f.Add([]byte{byte(ambiguous), 0, byte(transient), 1, byte(listed), 0x12})
	f.Add([]byte{byte(ambiguous), 0, byte(transient), 1, byte(joined), 0x12, byte(hidden), 3})
	f.Add([]byte{byte(ambiguous), 0, byte(nested), 1, byte(transient), 2, byte(listed), 0x23})
	f.Add([]byte{byte(busy), 0, byte(twice), 1, byte(busy), 2, byte(twice), 3, byte(nested), 4})
	f.Add([]byte{byte(canceled), 0, byte(late), 1, byte(listed), 0x12, byte(nested), 3})
	f.Fuzz(func(t *testing.T, seed []byte) { agreesOnEveryPath(t, grow(seed[:min(len(seed), 24)])) })
}

// TestTheSearchTakesEveryPath compares Judge, IsAmbiguous and the others, which find marks by types, As and Is, with what
// was put into 50,000 random errors. It logs the first that have four parts and more.
func TestTheSearchTakesEveryPath(t *testing.T) {
	r := rand.New(rand.NewPCG(49, 1))
	logged := 0
	doubtful, undone, progressed, inRuns, stopped := 0, 0, 0, 0, 0
	for range 50_000 {
		seed := make([]byte, 2*r.IntN(12))
		for i := 0; i < len(seed); i += 2 {
			seed[i] = byte(r.IntN(int(kinds)))
			seed[i+1] = byte(i/2 - r.IntN(1+min(i/2, 3))) // mostly one of the last
			seed[i+1] |= byte(r.IntN(1+i/2)) << 4
		}
		n := grow(seed)
		w := agreesOnEveryPath(t, n)
		if logged < 3 && w.paths >= 4 {
			logged++
			t.Logf("%v: %+v", n, w)
		}
		switch {
		case w.ambiguous:
			doubtful++
		case errors.As(n.err, new(interface{ Ambiguous() bool })):
			undone++
		}
		if w.progressed {
			progressed++
		}
		if w.below > 0 {
			inRuns++
		}
		if w.canceled && w.class == retry.Unknown {
			stopped++
		}
	}
	require.Greater(t, min(doubtful, undone, progressed, inRuns, stopped), 500, "doubt %d, undone %d, progressed %d, hints in runs %d, canceled %d",
		doubtful, undone, progressed, inRuns, stopped)
}

// multi is hashicorp/go-multierror's Error, as of v1.1.1. What it holds is reached through its chain's Is and As: the
// first error of a chain has no Unwrap that leads to it.
type multi []error

func (m multi) Error() string { return fmt.Sprintf("%d errors occurred", len(m)) }

func (m multi) Unwrap() error {
	switch len(m) {
	case 0:
		return nil
	case 1:
		return m[0]
	}
	return chain(m)
}

type chain []error

func (e chain) Error() string { return e[0].Error() }

func (e chain) As(target any) bool { return errors.As(e[0], target) }

func (e chain) Is(target error) bool { return errors.Is(e[0], target) }

func (e chain) Unwrap() error {
	if len(e) == 1 {
		return nil
	}
	return e[1:]
}

// opaque is an error that others reach by Is and As alone.
type opaque struct{ err error }

func (o opaque) Error() string { return o.err.Error() }

func (o opaque) As(target any) bool { return errors.As(o.err, target) }

func (o opaque) Is(target error) bool { return errors.Is(o.err, target) }

// both is an error that leads to another one by As and by Unwrap.
type both struct{ err error }

func (b both) Error() string { return b.err.Error() }

func (b both) As(target any) bool { return errors.As(b.err, target) }

func (b both) Unwrap() error { return b.err }
