//go:build !linux

package providertest

import "syscall"

// smallDisk is the size of the disk that the case of the full disk fills.
const smallDisk = 0

// aloneAttr returns nil: only Linux has mount namespaces.
func aloneAttr() *syscall.SysProcAttr { return nil }

// mountSmallDisk fails, so the case is skipped.
func mountSmallDisk(string) error { return errNoDisk }
