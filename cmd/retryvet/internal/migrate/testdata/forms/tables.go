package forms

var tables = []map[string]Form{backoff4}
