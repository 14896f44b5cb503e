package docs

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestThePagesOfJobsAndPlansHaveOneStylesheet compares the two copies, which are in different modules.
func TestThePagesOfJobsAndPlansHaveOneStylesheet(t *testing.T) {
	jobs, err := os.ReadFile("../retryjob/jobsui/assets/style.css")
	require.NoError(t, err)
	plans, err := os.ReadFile("../cmd/retryplan/internal/web/assets/style.css")
	require.NoError(t, err)
	require.Equal(t, string(plans), string(jobs))
}
