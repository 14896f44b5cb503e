//go:build !linux

package drivers_test

import (
	"errors"
	"os/exec"
	"syscall"
)

// belong does nothing here: a server outlives a test binary that panics.
func belong(*exec.Cmd, syscall.Signal, *account) {}

// account is a user of this machine.
type account struct{ uid, gid uint32 }

// accountOf finds no account here: root cannot run the servers.
func accountOf(name string) (*account, error) {
	return nil, errors.New("no account " + name + " to run a server as, on this system")
}
