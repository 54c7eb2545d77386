package cherrygrove

// #include <cherrygrove.h>
// #cgo noescape cg_column_submit
// #cgo nocallback cg_column_submit
// #cgo noescape cg_column_save
// #cgo nocallback cg_column_save
import "C"

import "iter"

// Cells are the values of a section, packed: little-endian words of WordBits.
// Each holds WordBits/Bits values, lowest bits first. Bits 0: all
// cells are Palette[0]. A nil palette: the values are numbers themselves.
type Cells struct {
	Words    []byte
	Palette  []uint32
	Bits     uint8
	WordBits uint8
	Order    Order
	SideLog2 uint8 // 4: 4,096 cells; 2: 64
}

// Section is a chunk of a column.
type Section struct {
	Y                    int32   // in chunks
	Layers               []Cells // none: each cell is air
	Biomes               Cells   // without words and palette: stored ones stay
	BlockLight, SkyLight []byte  // 2,048 bytes; nil: stored ones stay
	// Damaged says of a load in a world that was opened with Partial that the
	// chunk cannot be read. A save does not touch it.
	Damaged bool
}

// BlockEntity is NBT, or any bytes, at a block.
type BlockEntity struct {
	At  Pos // in blocks
	NBT []byte
}

// Entity is an entity. Kind is a number of a binding, or of the world.
type Entity struct {
	ID        ID
	Kind      uint32
	Dimension uint32
	Block     Pos
	Fraction  [3]float32 // each from 0 to below 1
	NBT       []byte
}

// Scheduled is a tick of a block that is to come.
type Scheduled struct {
	At       Pos // in blocks
	Due      int64
	Block    uint32
	Priority int32
}

// ColumnAt names a column between two heights, in chunks, both included.
// Chunks outside are not touched.
type ColumnAt struct {
	Dimension  uint32
	X, Z       int64
	MinY, MaxY int32
}

// Column is a column of chunks with what is in it. Sections ascend by Y.
type Column struct {
	ColumnAt
	Tick          int64 // to which Due is relative
	Sections      []Section
	BlockEntities []BlockEntity
	Entities      []Entity
	Scheduled     []Scheduled
	// Of a load: what the host does not know and is kept, and the sections
	// that are damaged in a world that was opened with Partial.
	Kept, DamagedSections uint64
}

// Flags of a save.
const (
	// Part lets sections that are not listed stay; without it they are deleted.
	Part uint32 = C.CG_PART
)

// SaveColumn saves a column in a commit of its own. Nothing is written if it
// is what is stored; unchanged says so.
func (w *World) SaveColumn(b *Binding, col *Column, flags uint32) (commit uint64, unchanged bool, err error) {
	m := lendColumn(col)
	defer m.giveBack()
	var n C.uint64_t
	e := newError()
	r := C.cg_column_save(w.h.c(), b.h.c(), &m.column, C.uint32_t(flags), &n, e.c())
	return uint64(n), r == C.CG_UNCHANGED, e.result(r)
}

// SubmitColumn accepts a column: loads see it at once, and it is committed with
// what is submitted soon after or before. While the disk takes nothing it is
// held in memory. An error means that it was not accepted.
func (w *World) SubmitColumn(b *Binding, col *Column, flags uint32) (unchanged bool, err error) {
	m := lendColumn(col)
	defer m.giveBack()
	e := newError()
	r := C.cg_column_submit(w.h.c(), b.h.c(), &m.column, C.uint32_t(flags), e.c())
	return r == C.CG_UNCHANGED, e.result(r)
}

// Columns returns the columns of a dimension, ascending by x, then z. MinY and
// MaxY are the heights that are stored.
func (w *World) Columns(dimension uint32) iter.Seq2[ColumnAt, error] {
	return func(yield func(ColumnAt, error) bool) {
		var h C.cg_handle
		e := newError()
		if err := e.result(C.cg_columns_walk(w.h.c(), C.uint32_t(dimension), &h, e.c())); err != nil {
			yield(ColumnAt{}, err)
			return
		}
		defer C.cg_release(h)
		var out [256]C.cg_column_place
		for {
			var n C.size_t
			e := newError()
			if err := e.result(C.cg_columns_next(h, &out[0], C.size_t(len(out)), &n, e.c())); err != nil {
				yield(ColumnAt{}, err)
				return
			}
			if n == 0 {
				return
			}
			for _, at := range out[:n] {
				if !yield(ColumnAt{uint32(at.dimension), int64(at.x), int64(at.z), int32(at.min_y), int32(at.max_y)}, nil) {
					return
				}
			}
		}
	}
}
