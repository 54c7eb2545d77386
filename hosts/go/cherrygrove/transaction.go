package cherrygrove

// #include <cherrygrove.h>
import "C"

import (
	"runtime"
	"unsafe"
)

// Transaction is a list of writes that are checked and committed at once: all
// or none.
type Transaction struct{ h *handle }

// Begin returns an empty transaction.
func (w *World) Begin() (*Transaction, error) {
	var h C.cg_handle
	e := newError()
	if err := e.result(C.cg_tx_new(w.h.c(), &h, e.c())); err != nil {
		return nil, err
	}
	return &Transaction{own(h, "transaction")}, nil
}

// Update commits what f collects. Nothing is committed if f returns an error.
func (w *World) Update(durability Durability, f func(*Transaction) error) error {
	tx, err := w.Begin()
	if err != nil {
		return err
	}
	defer tx.Close()
	if err := f(tx); err != nil {
		return err
	}
	_, err = tx.Commit(durability)
	return err
}

// Close releases the transaction; what was not committed is not written.
func (tx *Transaction) Close() { tx.h.release() }

// Commit commits and empties the transaction. The error is of kind Conflict if
// something expected has another version; the transaction keeps its writes.
func (tx *Transaction) Commit(durability Durability) (uint64, error) {
	var n C.uint64_t
	e := newError()
	err := e.result(C.cg_tx_commit(tx.h.c(), C.uint32_t(durability), &n, e.c()))
	return uint64(n), err
}

// Submit accepts the writes as World.SubmitColumn accepts a column.
func (tx *Transaction) Submit() error {
	e := newError()
	return e.result(C.cg_tx_submit(tx.h.c(), e.c()))
}

// ExpectChunk demands that a chunk has a version; 0: that it is not stored.
func (tx *Transaction) ExpectChunk(dimension uint32, chunk Pos, version uint64) error {
	e := newError()
	return e.result(C.cg_tx_expect_chunk(tx.h.c(), C.uint32_t(dimension), chunk.c(), C.uint64_t(version), e.c()))
}

// ExpectEntity demands that an entity has a version.
func (tx *Transaction) ExpectEntity(id ID, version uint64) error {
	e := newError()
	return e.result(C.cg_tx_expect_entity(tx.h.c(), id.c(), C.uint64_t(version), e.c()))
}

// c lends the id to one call.
func (id *ID) c() *C.uint8_t { return (*C.uint8_t)(unsafe.Pointer(&id[0])) }

// Column writes a column.
func (tx *Transaction) Column(b *Binding, col *Column, flags uint32) error {
	m := lendColumn(col)
	defer m.giveBack()
	e := newError()
	return e.result(C.cg_tx_column(tx.h.c(), b.h.c(), &m.column, C.uint32_t(flags), e.c()))
}

// Chunk writes a chunk.
func (tx *Transaction) Chunk(dimension uint32, at Pos, chunk *Chunk) error {
	e := newError()
	return e.result(C.cg_tx_chunk(tx.h.c(), C.uint32_t(dimension), at.c(), chunk.h.c(), e.c()))
}

// DeleteChunk deletes a chunk with all that is in it.
func (tx *Transaction) DeleteChunk(dimension uint32, at Pos) error {
	e := newError()
	return e.result(C.cg_tx_delete_chunk(tx.h.c(), C.uint32_t(dimension), at.c(), e.c()))
}

// SetBlock replaces a block of a stored chunk by a number of the world.
func (tx *Transaction) SetBlock(dimension uint32, block Pos, id uint64) error {
	e := newError()
	return e.result(C.cg_tx_set_block(tx.h.c(), C.uint32_t(dimension), block.c(), C.uint64_t(id), e.c()))
}

// SetComponent replaces a component of a block.
func (tx *Transaction) SetComponent(dimension uint32, block Pos, layer uint8, component uint64, b []byte) error {
	e := newError()
	return e.result(C.cg_tx_set_component(tx.h.c(), C.uint32_t(dimension), block.c(), C.uint8_t(layer),
		C.uint64_t(component), lend(b), e.c()))
}

// SetSide replaces side data of a chunk; nil removes it.
func (tx *Transaction) SetSide(dimension uint32, chunk Pos, side uint64, b []byte) error {
	e := newError()
	return e.result(C.cg_tx_set_side(tx.h.c(), C.uint32_t(dimension), chunk.c(), C.uint64_t(side), lend(b), e.c()))
}

// PutEntity writes an entity. With a nil binding its kind is a number of the
// world. One that is detached belongs to no chunk, as a player does.
func (tx *Transaction) PutEntity(b *Binding, n *Entity, detached bool) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	c := n.c()
	pinSlice(&pin, n.NBT)
	c.nbt = lend(n.NBT)
	var flags C.uint32_t
	if detached {
		flags = C.CG_DETACHED
	}
	e := newError()
	return e.result(C.cg_tx_entity_put(tx.h.c(), b.c(), &c, flags, e.c()))
}

// c returns the handle of a binding, 0 for nil.
func (b *Binding) c() C.cg_handle {
	if b == nil {
		return 0
	}
	return b.h.c()
}

// DeleteEntity deletes an entity.
func (tx *Transaction) DeleteEntity(id ID) error {
	e := newError()
	return e.result(C.cg_tx_entity_delete(tx.h.c(), id.c(), e.c()))
}

// EntityComponent replaces a component of an entity that is stored or that the
// transaction has put; nil removes it.
func (tx *Transaction) EntityComponent(id ID, component uint64, b []byte) error {
	e := newError()
	return e.result(C.cg_tx_entity_component(tx.h.c(), id.c(), C.uint64_t(component), lend(b), e.c()))
}

// Property writes a property; nil removes it.
func (tx *Transaction) Property(name string, b []byte) error {
	e := newError()
	return e.result(C.cg_tx_property(tx.h.c(), str(name), lend(b), e.c()))
}

// Settings writes the settings that are not nil.
func (tx *Transaction) Settings(s *Settings) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	e := newError()
	return e.result(C.cg_tx_settings(tx.h.c(), s.c(&pin), e.c()))
}

// PutObject writes an object.
func (tx *Transaction) PutObject(key, b []byte) error {
	e := newError()
	return e.result(C.cg_tx_object_put(tx.h.c(), lend(key), lend(b), e.c()))
}

// DeleteObject deletes an object.
func (tx *Transaction) DeleteObject(key []byte) error {
	e := newError()
	return e.result(C.cg_tx_object_delete(tx.h.c(), lend(key), e.c()))
}

// Record is bytes of a kind at a point.
type Record struct {
	ID        ID
	Kind      string // at most 255 bytes
	Dimension uint32
	Block     Pos
	Fraction  [3]float32 // each from 0 to below 1
	Timestamp int64      // when it was made or changed, in the host's unit
	Bytes     []byte
}

// PutRecord writes a record.
func (tx *Transaction) PutRecord(r *Record) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	pinSlice(&pin, r.Bytes)
	c := C.cg_record{dimension: C.uint32_t(r.Dimension), block: r.Block.c(), timestamp: C.int64_t(r.Timestamp),
		kind: pinStr(&pin, r.Kind), bytes: lend(r.Bytes)}
	for i, b := range r.ID {
		c.id[i] = C.uint8_t(b)
	}
	for i, f := range r.Fraction {
		c.fraction[i] = C.float(f)
	}
	e := newError()
	return e.result(C.cg_tx_record_put(tx.h.c(), &c, e.c()))
}

// DeleteRecord deletes a record.
func (tx *Transaction) DeleteRecord(id ID) error {
	e := newError()
	return e.result(C.cg_tx_record_delete(tx.h.c(), id.c(), e.c()))
}
