package cli

import (
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/retrygo/retry/cmd/retryplan/internal/fit"
)

// measured are the flags of metrics that say what a service does.
type measured struct {
	from []string
	over time.Duration
}

func (m *measured) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&m.from, "from", nil, "read rate, failure rate and duration from this `file` of metrics: FILE or NAME@FILE; two are two scrapes")
	durationVar(flags, &m.over, "over", "the time over which the counters of --from count")
}

// read returns the measured traffic, or nil if --from is not given, and prints it.
func (m *measured) read(a *app) (*fit.Traffic, error) {
	if len(m.from) == 0 {
		if a.given("over") {
			return nil, misusef("--over is the time of --from, which is missing")
		}
		return nil, nil
	}
	policy := ""
	var files [][]byte
	for _, file := range m.from {
		if name, rest, ok := strings.Cut(file, "@"); ok {
			policy, file = name, rest
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		files = append(files, data)
	}
	traffic, err := fit.Read(policy, m.over, files...)
	if errors.Is(err, fit.ErrTime) {
		return nil, misusef("--from %s does not say over what time it counts: give --over, or two scrapes and the time between them", m.from[0])
	}
	if err != nil {
		return nil, misusef("--from %s: %w", m.from[len(m.from)-1], err)
	}
	a.remark("from %s: %v", strings.Join(m.from, " and "), traffic)
	return &traffic, nil
}
