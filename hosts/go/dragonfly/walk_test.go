package dragonfly

import "io/fs"

// walk calls f with the size of each file.
func walk(root fs.FS, f func(size int64)) error {
	return fs.WalkDir(root, ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			f(info.Size())
		}
		return err
	})
}
