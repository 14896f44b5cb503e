// Package clients tests package retrygax with generated clients of Google Cloud. It is a module of its own, so that
// they are not required by the users of retrygax, and no part of the workspace: run its tests with GOWORK=off.
package clients
