package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/retryjob"
)

// complete completes the values of a selection's flags. The values of the others are in the database.
func (s *selection) complete(cmd *cobra.Command) {
	known := map[string][]string{"status": texts(s.able), "reason": texts(retryjob.Reasons()), "limit": nil}
	for _, flag := range append(retryjob.FilterKeys(), "limit") {
		complete := func(_ *cobra.Command, _ []string, typed string) (list []cobra.Completion, _ cobra.ShellCompDirective) {
			comma := strings.LastIndexByte(typed, ',') + 1
			for _, value := range known[flag] {
				if strings.HasPrefix(value, typed[comma:]) {
					list = append(list, typed[:comma]+value)
				}
			}
			return list, cobra.ShellCompDirectiveNoFileComp
		}
		_ = cmd.RegisterFlagCompletionFunc(flag, complete) // the flags are there, once each
	}
}
