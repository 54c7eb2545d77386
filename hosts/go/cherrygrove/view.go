package cherrygrove

// #include <cherrygrove.h>
// #cgo noescape cg_column_load
// #cgo nocallback cg_column_load
import "C"

import (
	"sync"
	"unsafe"
)

// ViewColumn loads a column and calls f with it. The column, with all that it
// refers to, is memory of the library and is valid until f returns. The error
// is ErrAbsent if no chunk of it is stored. It waits for the disk where memory
// does not have the column.
func (w *World) ViewColumn(b *Binding, at ColumnAt, f func(*Column) error) error {
	return w.view(b, at, f, false)
}

// PeekColumn is ViewColumn from memory alone: ErrPending if the disk would
// have to be read.
func (w *World) PeekColumn(b *Binding, at ColumnAt, f func(*Column) error) error {
	return w.view(b, at, f, true)
}

// loan is what a load needs in C: the place, and where the answer goes.
type loan struct {
	at     C.cg_column_at
	handle C.cg_handle
	view   *C.cg_column
	column Column
	layers []Cells
}

var loans = sync.Pool{New: func() any { return new(loan) }}

func (w *World) view(b *Binding, at ColumnAt, f func(*Column) error, peek bool) error {
	l := loans.Get().(*loan)
	defer loans.Put(l)
	l.at = C.cg_column_at{struct_size: C.uint32_t(sizeOf[C.cg_column_at]()), dimension: C.uint32_t(at.Dimension),
		x: C.int64_t(at.X), z: C.int64_t(at.Z), min_y: C.int32_t(at.MinY), max_y: C.int32_t(at.MaxY)}
	l.handle, l.view = 0, nil
	e := newError()
	var r C.int
	if peek {
		r = C.cg_column_peek(w.h.c(), b.h.c(), &l.at, &l.handle, &l.view, e.c())
	} else {
		r = C.cg_column_load(w.h.c(), b.h.c(), &l.at, &l.handle, &l.view, e.c())
	}
	if err := e.result(r); err != nil {
		return err
	}
	defer C.cg_release(l.handle)
	l.read()
	defer l.forget()
	return f(&l.column)
}

// read makes the column out of the view.
func (l *loan) read() {
	v, c := l.view, &l.column
	c.ColumnAt = ColumnAt{uint32(v.dimension), int64(v.x), int64(v.z), int32(v.min_y), int32(v.max_y)}
	c.Tick, c.Kept, c.DamagedSections = int64(v.tick), uint64(v.kept), uint64(v.damaged_sections)
	sections := unsafe.Slice(v.sections, int(v.section_count))
	n := 0
	for i := range sections {
		n += int(sections[i].layer_count)
	}
	l.layers = grown(l.layers, n)
	c.Sections = grown(c.Sections, len(sections))
	for i := range sections {
		s := &sections[i]
		first := len(l.layers)
		layers := unsafe.Slice(s.layers, int(s.layer_count))
		for j := range layers {
			l.layers = append(l.layers, goCells(&layers[j]))
		}
		c.Sections = append(c.Sections, Section{Y: int32(s.y), Layers: l.layers[first:len(l.layers):len(l.layers)],
			Biomes: goCells(&s.biomes), BlockLight: light(s.block_light), SkyLight: light(s.sky_light),
			Damaged: s.flags&C.CG_SECTION_DAMAGED != 0})
	}
	c.BlockEntities = c.BlockEntities[:0]
	for _, b := range unsafe.Slice(v.block_entities, int(v.block_entity_count)) {
		c.BlockEntities = append(c.BlockEntities, BlockEntity{goPos(b.at), borrowed(b.nbt)})
	}
	c.Entities = c.Entities[:0]
	entities := unsafe.Slice(v.entities, int(v.entity_count))
	for i := range entities {
		c.Entities = append(c.Entities, goEntity(&entities[i]))
	}
	c.Scheduled = c.Scheduled[:0]
	for _, s := range unsafe.Slice(v.scheduled, int(v.scheduled_count)) {
		c.Scheduled = append(c.Scheduled, Scheduled{goPos(s.at), int64(s.due), uint32(s.block), int32(s.priority)})
	}
}

// forget clears what refers to memory of the library.
func (l *loan) forget() {
	clear(l.layers)
	clear(l.column.Sections)
	clear(l.column.BlockEntities)
	clear(l.column.Entities)
	l.view = nil
}

func light(p *C.uint8_t) []byte {
	if p == nil {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(p)), 2048)
}

func goCells(c *C.cg_cells) Cells {
	out := Cells{Bits: uint8(c.bits), WordBits: uint8(c.word_bits), Order: Order(c.order), SideLog2: uint8(c.side_log2)}
	if c.words != nil {
		out.Words = unsafe.Slice((*byte)(unsafe.Pointer(c.words)), int(c.words_len))
	}
	if c.palette != nil {
		out.Palette = unsafe.Slice((*uint32)(unsafe.Pointer(c.palette)), int(c.palette_len))
	}
	return out
}

func goEntity(n *C.cg_entity) Entity {
	return Entity{goID(n.id), uint32(n.kind), uint32(n.dimension), goPos(n.block),
		[3]float32{float32(n.fraction[0]), float32(n.fraction[1]), float32(n.fraction[2])}, borrowed(n.nbt)}
}
