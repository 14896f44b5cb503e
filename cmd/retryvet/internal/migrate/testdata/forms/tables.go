package forms

var tables = []map[string]Form{backoff4, backoff5}
