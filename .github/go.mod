// Folders with a go.mod are not in the zip of the root module: no importer downloads these files.
module github.com/retrygo/retry/github
