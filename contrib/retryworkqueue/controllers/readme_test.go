package controllers

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryworkqueue"
)

// setup is the code of the README.
func setup(mgr manager.Manager, inner reconcile.Reconciler, policy retry.Policy) error {
	limiter, err := retryworkqueue.New[reconcile.Request](policy)
	if err != nil {
		return err
	}
	return builder.ControllerManagedBy(mgr).
		For(&appsv1.Deployment{}).
		WithOptions(controller.Options{RateLimiter: limiter}).
		Complete(&retryworkqueue.Reconciler[reconcile.Request, reconcile.Result]{
			Limiter:  limiter,
			Inside:   inner.Reconcile,
			Terminal: reconcile.TerminalError,
		})
}

func TestTheREADMEShowsTheCode(t *testing.T) {
	require.Error(t, setup(nil, reconcile.Func(nil), retry.Policy{TTL: -1}))
	page, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	source, err := os.ReadFile("readme_test.go")
	require.NoError(t, err)
	code := regexp.MustCompile(`(?s)\nfunc setup\(.*?\n}\n`).FindString(string(source))
	require.Contains(t, string(page), strings.TrimSpace(code))
}
