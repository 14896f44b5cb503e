module example.com/refused

go 1.26.0

require (
	github.com/cenkalti/backoff/v4 v4.3.0
	github.com/cenkalti/backoff/v5 v5.0.3
	github.com/cockroachdb/cockroach v0.0.0
	github.com/grafana/dskit v0.0.0-20260703122047-de1ec7541c44
	k8s.io/apimachinery v0.37.2
)

require (
	github.com/go-logr/logr v1.4.3 // indirect
	k8s.io/klog/v2 v2.140.0 // indirect
	k8s.io/utils v0.0.0-20260626114624-be93311217bd // indirect
)

replace github.com/cockroachdb/cockroach => ./cockroach
