package providertest

import (
	"fmt"
	"os"
	"syscall"
)

// smallDisk is the size of the disk that the case of the full disk fills.
const smallDisk = 256 << 20

// aloneAttr returns what gives a process mounts of its own without root.
func aloneAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
}

// mountSmallDisk mounts a disk of smallDisk bytes over dir.
func mountSmallDisk(dir string) error {
	if err := syscall.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("size=%d", smallDisk)); err != nil {
		return fmt.Errorf("%w: %v", errNoDisk, err)
	}
	return nil
}
