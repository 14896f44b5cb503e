module github.com/retrygo/retry/retryconf/formats

go 1.25.0

require (
	github.com/BurntSushi/toml v1.6.0
	github.com/retrygo/retry v0.1.0
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	github.com/stretchr/testify v1.12.1
	gopkg.in/yaml.v3 v3.0.1
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/text v0.14.0 // indirect
)

replace github.com/retrygo/retry => ../..
