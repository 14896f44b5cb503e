module github.com/cockroachdb/cockroach

go 1.26.0
