// Package leveldb has the error of what is absent.
package leveldb

import "errors"

var ErrNotFound = errors.New("not found")
