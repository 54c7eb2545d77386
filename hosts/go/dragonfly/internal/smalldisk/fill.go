// Package smalldisk gives a child process of a test a small disk to fill.
package smalldisk

import (
	"errors"
	"os"
	"path/filepath"
)

// ErrNone says that this system lets the process mount nothing.
var ErrNone = errors.New("no small disk can be mounted")

// Fill writes a file into dir until the disk is full, and returns its name.
func Fill(dir string) (string, error) {
	name := filepath.Join(dir, "ballast")
	f, err := os.Create(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for size := 1 << 20; size >= 1; size /= 16 {
		block := make([]byte, size)
		for err == nil {
			_, err = f.Write(block)
		}
		err = nil
	}
	return name, nil
}
