package forms

var tables = []map[string]Form{backoff4, backoff5, retryGo, goRetry, retryHTTP}
