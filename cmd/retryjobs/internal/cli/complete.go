package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/retryjob"
)

const (
	completionTime = time.Second // for the database to answer
	completionRows = 500         // jobs that are read
)

// completeSelection completes the values of a selection's flags.
func (a *app) completeSelection(cmd *cobra.Command, s *selection) {
	for flag, values := range map[string]func(context.Context) []string{
		"status": func(context.Context) []string { return texts(s.able) },
		"reason": func(context.Context) []string { return texts(retryjob.Reasons()) },
		"policy": func(ctx context.Context) []string {
			return a.stored(ctx, s.able, func(i *retryjob.Info) string { return i.Policy })
		},
		"kind": func(ctx context.Context) []string {
			return a.stored(ctx, s.able, func(i *retryjob.Info) string { return i.Kind })
		},
		"tag":   func(context.Context) []string { return nil },
		"since": func(context.Context) []string { return nil },
		"until": func(context.Context) []string { return nil },
		"limit": func(context.Context) []string { return nil },
	} {
		complete := func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			before, prefix := "", typed
			if comma := strings.LastIndexByte(typed, ','); comma >= 0 {
				before, prefix = typed[:comma+1], typed[comma+1:]
			}
			var list []cobra.Completion
			for _, value := range values(cmd.Context()) {
				if strings.HasPrefix(value, prefix) {
					list = append(list, before+value)
				}
			}
			return list, cobra.ShellCompDirectiveNoFileComp
		}
		_ = cmd.RegisterFlagCompletionFunc(flag, complete) // the flags are there, once each
	}
}

// completeIDs completes the IDs of jobs with a status that a command accepts, at most n of them if n is not 0.
func (a *app) completeIDs(most int, able func(retryjob.Status) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ids := a.stored(cmd.Context(), statusesThat(able), func(i *retryjob.Info) string { return i.JobID })
		ids = slices.DeleteFunc(ids, func(id string) bool { return !strings.HasPrefix(id, typed) || slices.Contains(args, id) })
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

// stored returns the results of value for the most recently changed jobs, sorted. Without a database it returns
// nothing: a completion cannot show an error.
func (a *app) stored(ctx context.Context, able []retryjob.Status, value func(*retryjob.Info) string) []string {
	database, err := a.choose(a.database != "")
	if err != nil {
		return nil
	}
	if ctx == nil { // cobra completes flags without one
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	store, err := a.Open(ctx, database)
	if err != nil {
		return nil
	}
	defer store.Close()
	var values []string
	for info, err := range store.List(ctx, retryjob.Filter{Statuses: able, Limit: completionRows}) {
		if err != nil {
			break
		}
		if text := value(&info); text == printable(text) {
			values = append(values, text)
		}
	}
	slices.Sort(values)
	return slices.Compact(values)
}
