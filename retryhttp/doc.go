// Package retryhttp repeats HTTP requests. Its Transport is an http.RoundTripper for any http.Client, and it does what
// such a client needs beyond a loop: it knows which requests may be sent twice, sends their bodies again only if that
// is safe, lets a body be read for as long as it takes, obeys Retry-After, and gives the caller the last response or
// error instead of one of its own.
package retryhttp
