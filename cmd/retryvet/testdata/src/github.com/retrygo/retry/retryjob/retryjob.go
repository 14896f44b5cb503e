package retryjob

import "context"

type Job struct{}
type Handler func(ctx context.Context, job Job) error
type Options struct{ Handlers map[string]Handler }
