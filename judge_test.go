package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
)

// Doubt that is under Transient in one place and not in another is doubt.
func TestDoubtThatIsFoundTwice(t *testing.T) {
	lost := retry.Ambiguous(errFlaky)
	again := retry.Transient(lost)
	var hints error = lost
	for range 12 {
		hints = both{retry.After(sec, hints)}
	}
	for _, row := range []struct {
		name string
		err  error
		want bool
	}{
		{"in a list, under Transient first", multi{again, lost}, true},
		{"in a list, under Transient last", multi{lost, again}, true},
		{"in a list, under Transient only", multi{again, again}, false},
		{"in a join with an As, under Transient first", errors.Join(opaque{io.EOF}, again, lost), true},
		{"in one element of a list, under Transient first", multi{errors.Join(again, lost), io.EOF}, true},
		{"in one element of a list, under Transient only", multi{errors.Join(again, again), io.EOF}, false},
		{"in a list, in a nested run under Transient first", multi{retry.Transient(runOf(lost)), runOf(lost)}, true},
		{"in a list, in a timeout under Transient first",
			multi{retry.Transient(retryshell.MarkTimeout(retry.Ambiguous(context.Canceled))), lost}, true},
		{"in a list under Transient, and beside it", errors.Join(retry.Transient(multi{io.EOF, lost}), multi{io.EOF, lost}), true},
		{"behind more hints than are looked at", hints, true},
		{"behind more hints than are looked at, in an opaque error", opaque{hints}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, retry.IsAmbiguous(row.err))
			calls := 0
			_ = retry.Do(t.Context(), atOnce, func(context.Context) error {
				calls++
				return row.err
			})
			require.Equal(t, row.want, calls == 1, "it is not repeated")
		})
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
