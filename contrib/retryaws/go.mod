module github.com/retrygo/retry/contrib/retryaws

go 1.25.0

require (
	github.com/aws/aws-sdk-go-v2 v1.47.5 // 1.47.1 leaves a response's body open after an AttemptTimeout
	github.com/aws/smithy-go v1.28.7
	github.com/retrygo/retry v0.1.0
)

replace github.com/retrygo/retry => ../..
