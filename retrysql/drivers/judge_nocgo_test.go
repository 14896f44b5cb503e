//go:build !cgo

package drivers_test

var sqliteDrivers = []string{modernc.name}
