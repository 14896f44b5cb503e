// Package clients tests package retryaws with the S3 client of the AWS SDK. It is a module of its own, so that no client is
// required by the users of retryaws.
package clients
