package retry_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
)

// node is an error that is known to be made of others.
type node struct {
	err  error
	kind byte
	hint time.Duration
	in   []*node // in the order of errors.Is
}

// grow makes errors from bytes, each of which wraps one or two of those before it, and returns the last one.
func grow(seed []byte) *node {
	nodes := []*node{{err: errFlaky, kind: leaf}}
	for ; len(seed) >= 2; seed = seed[2:] {
		left := nodes[int(seed[1]&15)%len(nodes)]
		right := nodes[int(seed[1]>>4)%len(nodes)]
		n := &node{kind: seed[0] % kinds, in: []*node{left}}
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
		}
		nodes = append(nodes, n)
	}
	return nodes[len(nodes)-1]
}

// walked is the result of a walk over every path from an error to what it is made of.
type walked struct {
	class      retry.Class
	hint       time.Duration
	below      time.Duration
	ambiguous  bool
	progressed bool
	paths      int
}

func (w *walked) walk(n *node, inRun, underTransient bool) {
	if n.kind == leaf {
		w.paths++
	}
	class := map[byte]retry.Class{permanent: retry.Terminal, ambiguous: retry.Terminal, transient: retry.Retryable}[n.kind]
	if inRun {
		w.below = max(w.below, n.hint)
	} else {
		w.hint = max(w.hint, n.hint)
		w.progressed = w.progressed || n.kind == progressed
		if w.class == retry.Unknown {
			w.class = class
		}
	}
	w.ambiguous = w.ambiguous || n.kind == ambiguous && !underTransient
	for _, in := range n.in {
		w.walk(in, inRun || n.kind == nested, underTransient || n.kind == transient)
	}
}

// agreesOnEveryPath compares what the package finds in an error with a walk over all paths.
func agreesOnEveryPath(t *testing.T, seed []byte) (want walked) {
	seed = seed[:min(len(seed), 24)]
	n := grow(seed)
	want.walk(n, false, false)
	if want.paths > 400 {
		return want // the search can stop at the thousandth mark
	}
	if want.ambiguous {
		want.class = retry.Terminal
	}
	if want.class == retry.Unknown {
		want.class = retry.Retryable
	}
	p := retry.Policy{MaxAttempts: retry.Unlimited}
	got := walked{paths: want.paths, ambiguous: retry.IsAmbiguous(n.err), below: want.below}
	got.class, got.hint = p.Judge(n.err)
	got.progressed = p.Decide(retry.Progress{Attempt: 3, Class: retry.Retryable}, n.err, 0).Forgiven == 2
	require.Equal(t, want, got, "%v", seed)
	hint := want.hint
	if hint == 0 {
		hint = want.below
	}
	require.Equal(t, hint, (&retry.Error{Last: n.err}).Hint(), "%v", seed)
	return want
}

func FuzzEveryPath(f *testing.F) {
	f.Add([]byte{ambiguous, 0, transient, 1, listed, 0x12})
	f.Add([]byte{ambiguous, 0, transient, 1, joined, 0x12, hidden, 3})
	f.Add([]byte{ambiguous, 0, nested, 1, transient, 2, listed, 0x23})
	f.Add([]byte{busy, 0, twice, 1, busy, 2, twice, 3, nested, 4})
	f.Fuzz(func(t *testing.T, seed []byte) { agreesOnEveryPath(t, seed) })
}

func TestTheSearchTakesEveryPath(t *testing.T) {
	r := rand.New(rand.NewPCG(49, 1))
	doubtful, undone, progressed, inRuns := 0, 0, 0, 0
	for range 30_000 {
		seed := make([]byte, 2*r.IntN(12))
		for i := 0; i < len(seed); i += 2 {
			seed[i] = byte(r.IntN(kinds))
			seed[i+1] = byte(i/2 - r.IntN(1+min(i/2, 3))) // mostly one of the last
			seed[i+1] |= byte(r.IntN(1+i/2)) << 4
		}
		w := agreesOnEveryPath(t, seed)
		switch {
		case w.ambiguous:
			doubtful++
		case errors.As(grow(seed).err, new(interface{ Ambiguous() bool })):
			undone++
		}
		if w.progressed {
			progressed++
		}
		if w.below > 0 {
			inRuns++
		}
	}
	require.Greater(t, min(doubtful, undone, progressed, inRuns), 500, "doubt %d, undone %d, progressed %d, hints in runs %d",
		doubtful, undone, progressed, inRuns)
}

// FuzzMarks builds a tree of errors from bytes, together with what the docs say of it.
func FuzzMarks(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6})
	f.Add([]byte{5, 1, 0, 5, 3, 0, 2, 0})
	f.Add([]byte{6, 1, 0})
	f.Add([]byte{9, 3, 6, 8, 0, 1})
	f.Add([]byte{9, 5, 3, 0, 8, 0, 6, 1})
	f.Add([]byte{10, 5, 6, 0, 2, 0})
	f.Add([]byte{9, 11, 4, 1})
	f.Fuzz(func(t *testing.T, tree []byte) { agrees(t, tree) })
}

// TestTheWalkAgreesWithWhatTreesAreMadeOf compares Judge and IsAmbiguous, which find marks by types, As and Is, with what
// was put into 100,000 random trees of errors.
func TestTheWalkAgreesWithWhatTreesAreMadeOf(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 2))
	clear, ambiguous, deep := 0, 0, 0
	for range 100_000 {
		tree := make([]byte, r.IntN(24))
		for i := range tree {
			tree[i] = byte(r.IntN(256))
		}
		want := agrees(t, tree)
		if !want.unclear {
			clear++
		}
		if want.ambiguous {
			ambiguous++
		}
		if want.outermost > 1 {
			deep++
		}
	}
	require.Greater(t, min(clear, ambiguous, deep), 5_000, "clear %d, ambiguous %d, with several marks %d", clear, ambiguous, deep)
}

// agrees compares Judge and IsAmbiguous with what is in the tree that is built.
func agrees(t *testing.T, tree []byte) marksIn {
	given := tree
	want, err := build(&tree, 0)
	class := retry.Retryable
	switch {
	case want.ambiguous:
		class = retry.Terminal
	case want.class != retry.Unknown:
		class = want.class
	case want.canceled:
		class = retry.Terminal
	}
	got, hint := retry.Policy{}.Judge(err)
	if !want.unclear {
		require.Equal(t, class, got, given)
		require.Equal(t, want.hint, hint, given)
	}
	require.Equal(t, want.ambiguous, retry.IsAmbiguous(err), given)
	return want
}

// marksIn is what is to be found in an error's tree.
type marksIn struct {
	class     retry.Class
	hint      time.Duration
	canceled  bool
	ambiguous bool
	outermost int  // marks, timeouts and nested runs that are under no other
	bare      bool // there is a cancellation that is under none of them
	unclear   bool // what there is is beyond what As and Is can show: see hidden
}

// and adds what is found after m.
func (m marksIn) and(n marksIn) marksIn {
	if m.class == retry.Unknown {
		m.class = n.class
	}
	return marksIn{m.class, max(m.hint, n.hint), m.canceled || n.canceled, m.ambiguous || n.ambiguous, m.outermost + n.outermost,
		m.bare || n.bare, m.unclear || n.unclear}
}

// hidden is m if only Is and As see it: Is shows no scope.
func (m marksIn) hidden() marksIn {
	m.unclear = m.unclear || m.outermost > 0 && m.bare
	return m
}

// under is m under a mark, a timeout or a nested run.
func (m marksIn) under() marksIn {
	m.outermost, m.bare = 1, false
	return m
}

func build(tree *[]byte, depth int) (marksIn, error) {
	if len(*tree) == 0 || depth > 7 {
		return marksIn{}, errFlaky
	}
	kind := (*tree)[0]
	*tree = (*tree)[1:]
	child := func() (marksIn, error) { return build(tree, depth+1) }
	switch kind % 12 {
	case 1:
		return marksIn{canceled: true, bare: true}, context.Canceled
	case 2:
		m, err := child()
		m.class = retry.Terminal
		return m.under(), retry.Permanent(err)
	case 3:
		m, err := child()
		m.class, m.ambiguous = retry.Retryable, false
		return m.under(), retry.Transient(err)
	case 4:
		m, err := child()
		hint := time.Duration(kind) * sec
		m.hint = max(m.hint, hint)
		return m.under(), retry.After(hint, err)
	case 5:
		m, left := child()
		n, right := child()
		return m.and(n), errors.Join(left, right)
	case 6:
		m, err := child()
		return marksIn{ambiguous: m.ambiguous, unclear: m.unclear}.under(), runOf(err)
	case 7:
		m, err := child()
		return m, fmt.Errorf("while testing: %w", err)
	case 8:
		m, err := child()
		m.class, m.ambiguous = retry.Terminal, true
		return m.under(), retry.Ambiguous(err)
	case 9:
		m, left := child()
		n, right := child()
		return m.hidden().and(n.hidden()), multi{left, right}
	case 10:
		m, err := child()
		return m.hidden(), opaque{err}
	case 11:
		m, err := child()
		canceled := errors.Is(err, context.Canceled)
		if !canceled && (!errors.Is(err, context.DeadlineExceeded) || errors.Is(err, retry.ErrAttemptTimeout)) {
			return m, retryshell.MarkTimeout(err) // err as it is
		}
		m.canceled = false
		return m.under(), retryshell.MarkTimeout(err)
	default:
		return marksIn{}, errFlaky
	}
}

// The kinds of a node.
const (
	permanent = iota
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
	kinds
	leaf
)

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
