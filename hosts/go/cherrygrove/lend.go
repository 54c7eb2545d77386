package cherrygrove

// #include <cherrygrove.h>
import "C"

import (
	"runtime"
	"sync"
	"unsafe"
)

// lentColumn is a column as the library reads it during a call: C structs in
// Go memory that is pinned.
type lentColumn struct {
	column        C.cg_column
	sections      []C.cg_section
	layers        []C.cg_cells
	blockEntities []C.cg_block_entity
	entities      []C.cg_entity
	scheduled     []C.cg_scheduled
	pin           runtime.Pinner
	pinned        [4]span
	next          int
}

// span is memory that is pinned already.
type span struct{ from, to uintptr }

var lentColumns = sync.Pool{New: func() any { return new(lentColumn) }}

// sizeOf returns the size of a type.
func sizeOf[T any]() uintptr {
	var t T
	return unsafe.Sizeof(t)
}

// lendColumn lays out a column for one call.
func lendColumn(col *Column) *lentColumn {
	m := lentColumns.Get().(*lentColumn)
	m.pin.Pin(m)
	m.sections, m.layers = m.sections[:0], m.layers[:0]
	n := 0
	for i := range col.Sections {
		n += len(col.Sections[i].Layers)
	}
	m.layers = grown(m.layers, n)
	m.sections = grown(m.sections, len(col.Sections))
	for i := range col.Sections {
		m.section(&col.Sections[i])
	}
	m.blockEntities = grown(m.blockEntities[:0], len(col.BlockEntities))
	for i := range col.BlockEntities {
		b := &col.BlockEntities[i]
		m.blockEntities = append(m.blockEntities, C.cg_block_entity{at: b.At.c(), nbt: m.bytes(b.NBT)})
	}
	m.entities = grown(m.entities[:0], len(col.Entities))
	for i := range col.Entities {
		c := col.Entities[i].c()
		c.nbt = m.bytes(col.Entities[i].NBT)
		m.entities = append(m.entities, c)
	}
	m.scheduled = grown(m.scheduled[:0], len(col.Scheduled))
	for i := range col.Scheduled {
		s := &col.Scheduled[i]
		m.scheduled = append(m.scheduled, C.cg_scheduled{at: s.At.c(), due: C.int64_t(s.Due), block: C.uint32_t(s.Block),
			priority: C.int32_t(s.Priority)})
	}
	m.column = C.cg_column{
		struct_size: C.uint32_t(sizeOf[C.cg_column]()), dimension: C.uint32_t(col.Dimension),
		x: C.int64_t(col.X), z: C.int64_t(col.Z), min_y: C.int32_t(col.MinY), max_y: C.int32_t(col.MaxY),
		tick: C.int64_t(col.Tick), sections: pinSlice(&m.pin, m.sections),
		block_entities: pinSlice(&m.pin, m.blockEntities), entities: pinSlice(&m.pin, m.entities),
		scheduled: pinSlice(&m.pin, m.scheduled), section_count: C.size_t(len(m.sections)),
		block_entity_count: C.size_t(len(m.blockEntities)), entity_count: C.size_t(len(m.entities)),
		scheduled_count: C.size_t(len(m.scheduled)),
	}
	if len(m.layers) > 0 {
		m.pin.Pin(unsafe.SliceData(m.layers))
	}
	return m
}

// giveBack ends the loan. The structs forget what they point to.
func (m *lentColumn) giveBack() {
	clear(m.sections)
	clear(m.layers)
	clear(m.blockEntities)
	clear(m.entities)
	m.column = C.cg_column{}
	m.pinned, m.next = [4]span{}, 0
	m.pin.Unpin()
	lentColumns.Put(m)
}

// grown returns an empty slice with room for n, so that what it holds does not
// move while it is filled.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, 0, n+n/2)
	}
	return s[:0]
}

// section lays out a section.
func (m *lentColumn) section(s *Section) {
	first := len(m.layers)
	for i := range s.Layers {
		m.layers = append(m.layers, m.cells(&s.Layers[i]))
	}
	c := C.cg_section{y: C.int32_t(s.Y), layer_count: C.uint16_t(len(s.Layers)), biomes: m.cells(&s.Biomes),
		block_light: m.bytes(s.BlockLight).ptr, sky_light: m.bytes(s.SkyLight).ptr}
	if len(s.Layers) > 0 {
		c.layers = &m.layers[first]
	}
	m.sections = append(m.sections, c)
}

// cells lays out cells.
func (m *lentColumn) cells(s *Cells) C.cg_cells {
	c := C.cg_cells{words_len: C.size_t(len(s.Words)), palette_len: C.uint32_t(len(s.Palette)),
		bits: C.uint8_t(s.Bits), word_bits: C.uint8_t(s.WordBits), order: C.uint8_t(s.Order), side_log2: C.uint8_t(s.SideLog2)}
	if len(s.Words) > 0 {
		c.words = (*C.uint8_t)(unsafe.Pointer(&s.Words[0]))
		keep(m, unsafe.Pointer(&s.Words[0]), uintptr(cap(s.Words)))
	}
	if len(s.Palette) > 0 {
		c.palette = (*C.uint32_t)(unsafe.Pointer(&s.Palette[0]))
		keep(m, unsafe.Pointer(&s.Palette[0]), uintptr(cap(s.Palette))*4)
	}
	return c
}

// bytes lays out bytes.
func (m *lentColumn) bytes(b []byte) C.cg_bytes {
	if len(b) > 0 {
		keep(m, unsafe.Pointer(&b[0]), uintptr(cap(b)))
	}
	return lend(b)
}

// keep pins memory. Parts of one piece of memory are pinned once, if the first
// of them is where the piece begins.
func keep(m *lentColumn, p unsafe.Pointer, size uintptr) {
	at := uintptr(p)
	for _, s := range m.pinned {
		if at >= s.from && at < s.to {
			return
		}
	}
	m.pin.Pin(p)
	m.pinned[m.next%len(m.pinned)] = span{at, at + size}
	m.next++
}

// c returns the entity without its NBT.
func (n *Entity) c() C.cg_entity {
	c := C.cg_entity{kind: C.uint32_t(n.Kind), dimension: C.uint32_t(n.Dimension), block: n.Block.c()}
	for i, b := range n.ID {
		c.id[i] = C.uint8_t(b)
	}
	for i, f := range n.Fraction {
		c.fraction[i] = C.float(f)
	}
	return c
}
