// Package tests has the long tests of the root module: servers on sockets, layers of services and whole models against
// its exported names. They are a module of their own so that no importer of the root module downloads them. The tests
// that cover a package stand beside its code.
package tests
