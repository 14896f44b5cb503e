package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"
)

// environment is what a report says of the machine and of the run. It names neither host nor path.
type environment struct {
	Command      string // to measure again
	Date         time.Time
	Rounds       int
	SampleTime   time.Duration
	Cores        int
	GOOS, GOARCH string
	Go           string // its version
	Peers        []peer
}

// peer is a module that contenders use.
type peer struct{ Path, Version string }

// peerPaths are the modules of the contenders' libraries. A report names those that are in the binary.
var peerPaths = []string{
	"github.com/PuerkitoBio/rehttp",
	"github.com/avast/retry-go/v4",
	"github.com/avast/retry-go/v5",
	"github.com/aws/aws-sdk-go-v2",
	"github.com/cenkalti/backoff/v5",
	"github.com/cenkalti/backoff/v7",
	"github.com/codeGROOVE-dev/retry",
	"github.com/eapache/go-resiliency",
	"github.com/failsafe-go/failsafe-go",
	"github.com/hashicorp/go-retryablehttp",
	"github.com/jpillora/backoff",
	"github.com/sethvargo/go-retry",
	"golang.org/x/time",
	"k8s.io/apimachinery",
}

// thisEnvironment returns the environment of this process. It leaves the run's own fields to the caller.
func thisEnvironment(date time.Time) environment {
	env := environment{
		Date: date, Cores: runtime.NumCPU(), GOOS: runtime.GOOS, GOARCH: runtime.GOARCH, Go: runtime.Version(),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		env.Peers = peers(info.Deps)
	}
	return env
}

// peers returns those of the modules that are peers, by path.
func peers(modules []*debug.Module) []peer {
	var found []peer
	for _, m := range modules {
		if slices.Contains(peerPaths, m.Path) {
			if m.Replace != nil {
				found = append(found, peer{m.Path, "replaced"}) // by what may be a folder of this machine
			} else {
				found = append(found, peer{m.Path, m.Version})
			}
		}
	}
	slices.SortFunc(found, func(a, b peer) int { return cmp.Compare(a.Path, b.Path) })
	return found
}

// machine returns the machine in general words.
func (e *environment) machine() string {
	family := map[string]string{"amd64": "x86-64", "386": "32-bit x86", "arm64": "64-bit ARM", "arm": "32-bit ARM"}
	return fmt.Sprintf("%s, %s, %s, %s", countCores(e.Cores), cmp.Or(family[e.GOARCH], e.GOARCH), e.GOOS+"/"+e.GOARCH, e.Go)
}

func countCores(n int) string {
	if n == 1 {
		return "1 core"
	}
	return fmt.Sprintf("%d cores", n)
}
