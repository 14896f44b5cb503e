package drivers_test

import (
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// belong makes the kernel send the signal to the process when this one is gone, for any reason, so no server outlives a
// test binary that panics. owner is the user to run it as; nil means the user of this process.
func belong(cmd *exec.Cmd, last syscall.Signal, owner *account) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: last, Setpgid: true} // no ^C but ours
	if owner != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: owner.uid, Gid: owner.gid}
	}
}

// account is a user of this machine.
type account struct{ uid, gid uint32 }

// accountOf returns the account with the given name.
func accountOf(name string) (*account, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &account{uint32(uid), uint32(gid)}, nil
}
