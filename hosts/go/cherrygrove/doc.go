// Package cherrygrove stores voxel worlds: chunks of 16×16×16 blocks at any
// coordinates, entities, records, objects and properties. What is committed
// together is there together after any crash, and what cannot be read is an
// error and never an absence.
//
// It wraps the C interface of the store, and is built with pkg-config:
//
//	cargo xtask hosts lib --release
//	export PKG_CONFIG_PATH=$PWD/target/hosts/pkgconfig
//
// All calls are safe from any goroutine, except that a Transaction, a Chunk
// and an iteration belong to one goroutine at a time. What Close releases is
// not released by the garbage collector: it only reports what was left open,
// to Leaked.
package cherrygrove

/*
#cgo pkg-config: cherrygrove
#include <cherrygrove.h>
*/
import "C"

import (
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// Leaked is called with what was not closed before the garbage collector
// found it. Set it before the first call of this package.
var Leaked = func(what string) { slog.Warn("cherrygrove: not closed: " + what) }

// Version returns the release of the library and how it was built.
func Version() string { return goString(C.cg_build_info()) }

// checkABI says whether the library is one that this package was compiled for.
func checkABI() error {
	e := newError()
	return e.result(C.cg_abi_check(C.CG_ABI_VERSION, e.c()))
}

// handle is a handle of the library that ends once.
type handle struct {
	h    atomic.Uint64
	stop *runtime.Cleanup
}

// own takes a handle; what names it where it leaks.
func own(h C.cg_handle, what string) *handle {
	o := &handle{}
	o.h.Store(uint64(h))
	o.stop = new(runtime.Cleanup)
	*o.stop = runtime.AddCleanup(o, func(what string) { Leaked(what) }, what)
	return o
}

// c returns the handle; 0, which the library refuses, after its end.
func (o *handle) c() C.cg_handle { return C.cg_handle(o.h.Load()) }

// take ends the handle and returns it, 0 if it has ended.
func (o *handle) take() C.cg_handle {
	h := o.h.Swap(0)
	if h != 0 && o.stop != nil {
		o.stop.Stop()
	}
	return C.cg_handle(h)
}

// release ends the handle.
func (o *handle) release() {
	if h := o.take(); h != 0 {
		C.cg_release(h)
	}
}

// goString copies a string of the library.
func goString(s C.cg_str) string { return C.GoStringN(s.ptr, C.int(s.len)) }

// str lends a string to one call.
func str(s string) C.cg_str {
	return C.cg_str{ptr: (*C.char)(unsafe.Pointer(unsafe.StringData(s))), len: C.size_t(len(s))}
}

// lend lends bytes to one call. Empty is not nil, which removes.
func lend(b []byte) C.cg_bytes {
	if b != nil && len(b) == 0 {
		b = nothing[:0:1]
	}
	return C.cg_bytes{ptr: (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(b))), len: C.size_t(len(b))}
}

var nothing [1]byte

// borrowed is memory of the library as a slice.
func borrowed(b C.cg_bytes) []byte {
	if b.ptr == nil {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(b.ptr)), int(b.len))
}

// text copies the bytes of a handle of text, and ends it.
func text(h C.cg_handle) ([]byte, error) {
	defer C.cg_release(h)
	var out C.cg_bytes
	e := newError()
	if err := e.result(C.cg_bytes_of(h, &out, e.c())); err != nil {
		return nil, err
	}
	return append([]byte{}, borrowed(out)...), nil
}

// LogLine is a line of the library's log.
type LogLine struct {
	Level int // 1 error, 2 warning, 3 information
	Text  string
}

// NextLogLine returns the next line of the log of this process, which has the
// last 1,024 lines. The log is one for all worlds.
func NextLogLine() (LogLine, bool) {
	buf := make([]byte, 4096)
	var n C.size_t
	var level C.uint32_t
	if C.cg_log_next((*C.char)(unsafe.Pointer(&buf[0])), C.size_t(len(buf)), &n, &level) != C.CG_OK {
		return LogLine{}, false
	}
	return LogLine{int(level), string(buf[:min(int(n), len(buf))])}, true
}

// Pos is a place in blocks, or in chunks of 16 blocks.
type Pos struct{ X, Y, Z int64 }

// Box has both of its corners.
type Box struct{ Min, Max Pos }

// ID is the name of an entity or a record.
type ID [16]byte

func (p Pos) c() C.cg_pos { return C.cg_pos{C.int64_t(p.X), C.int64_t(p.Y), C.int64_t(p.Z)} }

func goPos(p C.cg_pos) Pos { return Pos{int64(p.x), int64(p.y), int64(p.z)} }

func (b Box) c() C.cg_box { return C.cg_box{b.Min.c(), b.Max.c()} }

// String returns the coordinates.
func (p Pos) String() string { return fmt.Sprintf("%d %d %d", p.X, p.Y, p.Z) }
