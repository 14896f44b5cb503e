package retryconf_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

func TestPolicyAllocatesNothing(t *testing.T) {
	var c retryconf.Catalog
	ref := c.Define("x", retry.Standard())
	require.Zero(t, testing.AllocsPerRun(1000, func() { sink = ref.Policy() }))
}

var sink retry.Policy
