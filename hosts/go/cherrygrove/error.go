package cherrygrove

// #include <cherrygrove.h>
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"
)

// Kind says what kind of failure an error is. A Kind is an error, so that
// errors.Is(err, cherrygrove.Damaged) asks for it.
type Kind int32

// The kinds of failure.
const (
	Damaged     Kind = C.CG_DAMAGED     // stored bytes are damaged; nothing was changed
	Conflict    Kind = C.CG_CONFLICT    // another commit changed what this one is based on
	Busy        Kind = C.CG_BUSY        // a queue is full, or another process has the world
	LowDisk     Kind = C.CG_LOW_DISK    // the disk has less room than is demanded
	ReadOnly    Kind = C.CG_READ_ONLY   // the world takes no writes now
	Fenced      Kind = C.CG_FENCED      // another writer has the world
	Unavailable Kind = C.CG_UNAVAILABLE // the storage is not reachable now
	InDoubt     Kind = C.CG_IN_DOUBT    // it is unknown whether a commit is stored
	NotFound    Kind = C.CG_NOT_FOUND   // the named thing does not exist
	TooLarge    Kind = C.CG_TOO_LARGE   // something exceeds a limit
	Invalid     Kind = C.CG_INVALID     // the call contradicts itself or what is stored
	Closed      Kind = C.CG_CLOSED      // what the call refers to was closed
	Unsupported Kind = C.CG_UNSUPPORTED // this release does not support it
	Engine      Kind = C.CG_ENGINE      // the system or the storage library failed
	Internal    Kind = C.CG_INTERNAL    // an error of the library itself
)

// Error returns the code of the kind, such as "damaged".
func (k Kind) Error() string { return goString(C.cg_kind_code(C.int(k))) }

// Outcomes that are no failures.
var (
	// ErrAbsent says that nothing is stored there.
	ErrAbsent = errors.New("cherrygrove: nothing is stored there")
	// ErrPending says that it would have to be read from the disk.
	ErrPending = errors.New("cherrygrove: not in memory")
)

// Place is where a failure is.
type Place struct {
	Dimension uint32
	Chunk     Pos
}

// Error is a failure of the store.
type Error struct {
	Kind      Kind
	Retryable bool   // whether the same call may succeed later
	Place     *Place // nil if it has no place
	Message   string
}

// Error returns what is wrong, where, and what to do now.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the kind, for errors.Is.
func (e *Error) Unwrap() error { return e.Kind }

// callError is memory for the error of one call.
type callError C.cg_error

var callErrors = sync.Pool{New: func() any { return new(callError) }}

// newError returns memory for the error of a call. Its result takes it back.
func newError() *callError {
	e := callErrors.Get().(*callError)
	e.struct_size = C.uint32_t(unsafe.Sizeof(*e))
	return e
}

func (e *callError) c() *C.cg_error { return (*C.cg_error)(e) }

// result returns the error of a call, or its outcome where it is none of CG_OK
// and CG_UNCHANGED.
func (e *callError) result(r C.int) error {
	defer callErrors.Put(e)
	switch {
	case r == C.CG_ABSENT:
		return ErrAbsent
	case r == C.CG_PENDING:
		return ErrPending
	case r >= 0:
		return nil
	}
	err := &Error{Kind: Kind(r)}
	if e.kind == C.int32_t(r) {
		err.Retryable = e.retryable != 0
		err.Message = C.GoStringN(&e.message[0], C.int(min(int(e.message_len), len(e.message))))
		if e.has_place != 0 {
			err.Place = &Place{uint32(e.dimension), goPos(e.chunk)}
		}
	}
	if err.Message == "" {
		err.Message = fmt.Sprintf("cherrygrove: %v", err.Kind)
	}
	e.kind = 0
	return err
}

// closedError is the error of a call on what was closed.
func closedError(what string) error {
	return &Error{Kind: Closed, Message: "cherrygrove: the " + what + " is closed"}
}
