//go:build !linux

package smalldisk

import "syscall"

// Attr returns nil: only Linux has mount namespaces.
func Attr() *syscall.SysProcAttr { return nil }

// Mount fails with ErrNone.
func Mount(string) error { return ErrNone }
