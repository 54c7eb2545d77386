package cherrygrove

// #include <cherrygrove.h>
import "C"

import "unsafe"

// CellAt is a cell of a chunk and a layer of it.
type CellAt struct{ X, Y, Z, Layer uint8 }

func (a CellAt) c() C.cg_cell {
	return C.cg_cell{C.uint8_t(a.X), C.uint8_t(a.Y), C.uint8_t(a.Z), C.uint8_t(a.Layer)}
}

// Chunk is a copy of a chunk, in numbers of the world.
type Chunk struct{ h *handle }

// Chunk returns a copy of a stored chunk and its version, ErrAbsent if it is
// not stored.
func (w *World) Chunk(dimension uint32, at Pos) (*Chunk, uint64, error) {
	var h C.cg_handle
	var version C.uint64_t
	e := newError()
	if err := e.result(C.cg_chunk_load(w.h.c(), C.uint32_t(dimension), at.c(), &h, &version, e.c())); err != nil {
		return nil, 0, err
	}
	return &Chunk{own(h, "chunk")}, uint64(version), nil
}

// NewChunk returns a chunk with one block in each cell.
func (w *World) NewChunk(block uint64) (*Chunk, error) {
	var h C.cg_handle
	e := newError()
	if err := e.result(C.cg_chunk_new(w.h.c(), C.uint64_t(block), &h, e.c())); err != nil {
		return nil, err
	}
	return &Chunk{own(h, "chunk")}, nil
}

// Close releases the chunk.
func (c *Chunk) Close() { c.h.release() }

// Cells copies the blocks of layer 0.
func (c *Chunk) Cells(order Order, ids *[4096]uint64) error {
	e := newError()
	return e.result(C.cg_chunk_cells(c.h.c(), C.uint32_t(order), (*C.uint64_t)(unsafe.Pointer(ids)), 4096, e.c()))
}

// SetCells replaces the blocks of layer 0. Cells whose block changes get the
// components of the new one; upper layers go.
func (c *Chunk) SetCells(order Order, ids *[4096]uint64) error {
	e := newError()
	return e.result(C.cg_chunk_set_cells(c.h.c(), C.uint32_t(order), (*C.uint64_t)(unsafe.Pointer(ids)), 4096, e.c()))
}

// Block returns the block of a layer, ErrAbsent if the cell has no such layer.
func (c *Chunk) Block(at CellAt) (uint64, error) {
	var id C.uint64_t
	e := newError()
	err := e.result(C.cg_chunk_block(c.h.c(), at.c(), &id, e.c()))
	return uint64(id), err
}

// SetBlock replaces the block of a layer.
func (c *Chunk) SetBlock(at CellAt, id uint64) error {
	e := newError()
	return e.result(C.cg_chunk_set_block(c.h.c(), at.c(), C.uint64_t(id), e.c()))
}

// Component returns a component of a cell, ErrAbsent if it has none.
func (c *Chunk) Component(at CellAt, component uint64) ([]byte, error) {
	var out C.cg_bytes
	e := newError()
	if err := e.result(C.cg_chunk_component(c.h.c(), at.c(), C.uint64_t(component), &out, e.c())); err != nil {
		return nil, err
	}
	return append([]byte{}, borrowed(out)...), nil
}

// SetComponent replaces a component of a cell.
func (c *Chunk) SetComponent(at CellAt, component uint64, b []byte) error {
	e := newError()
	return e.result(C.cg_chunk_set_component(c.h.c(), at.c(), C.uint64_t(component), lend(b), e.c()))
}

// Component is a component of a cell.
type Component struct {
	Component uint64
	At        CellAt
	Bytes     []byte
}

// Components returns all components.
func (c *Chunk) Components() ([]Component, error) {
	var all *C.cg_component
	var n C.size_t
	e := newError()
	if err := e.result(C.cg_chunk_components(c.h.c(), &all, &n, e.c())); err != nil {
		return nil, err
	}
	out := make([]Component, 0, n)
	for _, p := range unsafe.Slice(all, int(n)) {
		at := CellAt{uint8(p.at.x), uint8(p.at.y), uint8(p.at.z), uint8(p.at.layer)}
		out = append(out, Component{uint64(p.component), at, append([]byte{}, borrowed(p.bytes)...)})
	}
	return out, nil
}

// Side returns side data, ErrAbsent if there is none.
func (c *Chunk) Side(side uint64) ([]byte, error) {
	var out C.cg_bytes
	e := newError()
	if err := e.result(C.cg_chunk_side(c.h.c(), C.uint64_t(side), &out, e.c())); err != nil {
		return nil, err
	}
	return append([]byte{}, borrowed(out)...), nil
}

// SetSide replaces side data; nil removes it.
func (c *Chunk) SetSide(side uint64, b []byte) error {
	e := newError()
	return e.result(C.cg_chunk_set_side(c.h.c(), C.uint64_t(side), lend(b), e.c()))
}
