package retrygrpc

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry/retryrpc"
)

// attemptError is a *retryrpc.AttemptError with the unchanged status of its Err, which status.FromError finds.
type attemptError struct{ *retryrpc.AttemptError }

func (e attemptError) Unwrap() error              { return e.AttemptError }
func (e attemptError) GRPCStatus() *status.Status { return status.Convert(e.Err) }

type callError struct{ *retryrpc.CallError }

func (e callError) Unwrap() error { return e.CallError }

// GRPCStatus returns the status of the last attempt, with its details, or that of the caller's context or policy.
func (e callError) GRPCStatus() *status.Status {
	if e.Last != nil {
		return status.Convert(e.Last)
	}
	return status.New(codes.Code(e.Code), e.Err.Error())
}
