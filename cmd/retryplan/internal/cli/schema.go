package cli

import (
	"github.com/spf13/cobra"

	"github.com/retrygo/retry/retryconf"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [policy | catalog]",
		Short: "Print the JSON Schema of a policy's document, or of a catalog's",
		Long: `schema prints the JSON Schema of the document of one policy (the default) or of a catalog, for editors and other
validators. It accepts what the documents' parser accepts; rules between keys, such as a cap below its base, are
for lint.`,
		Example: `  retryplan schema >policy.schema.json
  retryplan schema catalog >policies.schema.json`,
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"policy", "catalog"},
		RunE: func(_ *cobra.Command, args []string) error {
			schema := retryconf.Schema()
			if len(args) > 0 && args[0] == "catalog" {
				schema = retryconf.CatalogSchema()
			}
			_, err := a.out.Write(schema)
			return err
		},
	}
}
