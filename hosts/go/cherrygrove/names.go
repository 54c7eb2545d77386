package cherrygrove

// #include <cherrygrove.h>
import "C"

import (
	"runtime"
	"unsafe"
)

// List is a list of names of a world.
type List uint32

// The lists of names.
const (
	Blocks     List = C.CG_BLOCKS
	Components List = C.CG_COMPONENTS
	Entities   List = C.CG_ENTITIES
	Dimensions List = C.CG_DIMENSIONS
	Sides      List = C.CG_SIDES
)

// Flags of a block.
const (
	Opaque                 = C.CG_NAME_OPAQUE       // it hides what is behind it
	OwnsBlockEntity        = C.CG_NAME_BLOCK_ENTITY // it has a block entity
	NoID            uint64 = C.CG_NO_ID
)

// Name is a name to register.
type Name struct {
	Name       string
	Flags      uint32
	Width      uint32 // bytes of a component; 0: any number
	Components []string
}

// pinSlice lends a slice within a struct to one call.
func pinSlice[T any](pin *runtime.Pinner, s []T) *T {
	if len(s) == 0 {
		return nil
	}
	pin.Pin(&s[0])
	return &s[0]
}

// strings lends a list of strings to one call.
func lendStrings(pin *runtime.Pinner, list []string) []C.cg_str {
	out := make([]C.cg_str, len(list))
	for i, s := range list {
		out[i] = pinStr(pin, s)
	}
	return out
}

// Register registers the names that the world does not have, all or none, and
// returns the number of each.
func (w *World) Register(list List, names []Name) ([]uint64, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	in := make([]C.cg_name, len(names))
	for i, n := range names {
		parts := lendStrings(&pin, n.Components)
		in[i] = C.cg_name{name: pinStr(&pin, n.Name), flags: C.uint32_t(n.Flags), width: C.uint32_t(n.Width),
			components: pinSlice(&pin, parts), component_count: C.size_t(len(parts))}
	}
	ids := make([]uint64, len(names))
	e := newError()
	err := e.result(C.cg_names_register(w.h.c(), C.uint32_t(list), pinSlice(&pin, in), C.size_t(len(in)),
		(*C.uint64_t)(unsafe.SliceData(ids)), e.c()))
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// Find returns the number of each name, NoID for one that the world does not
// have.
func (w *World) Find(list List, names ...string) ([]uint64, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	in := lendStrings(&pin, names)
	ids := make([]uint64, len(names))
	e := newError()
	err := e.result(C.cg_names_find(w.h.c(), C.uint32_t(list), pinSlice(&pin, in), C.size_t(len(in)),
		(*C.uint64_t)(unsafe.SliceData(ids)), e.c()))
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// NameOf returns the name of a number, ErrAbsent if there is no such number.
func (w *World) NameOf(list List, id uint64) (string, error) {
	var h C.cg_handle
	e := newError()
	if err := e.result(C.cg_name_of(w.h.c(), C.uint32_t(list), C.uint64_t(id), &h, e.c())); err != nil {
		return "", err
	}
	b, err := text(h)
	return string(b), err
}

// Count returns how many names a list has.
func (w *World) Count(list List) (uint64, error) {
	var n C.uint64_t
	e := newError()
	err := e.result(C.cg_names_count(w.h.c(), C.uint32_t(list), &n, e.c()))
	return uint64(n), err
}

// Order says which axis of the cells of a section changes slowest.
type Order uint8

// The orders of cells.
const (
	XYZ Order = C.CG_ORDER_XYZ
	XZY Order = C.CG_ORDER_XZY // Bedrock Edition
	YZX Order = C.CG_ORDER_YZX // Java Edition
)

// BlockName is a state of a block; its number is its place in the list.
type BlockName struct {
	Name  string // minecraft:oak_log[axis=y], keys in any order
	Flags uint32 // Opaque, OwnsBlockEntity
}

// BiomeName is a biome and its number.
type BiomeName struct {
	Name   string
	Number uint32
}

// Known is what a host knows.
type Known struct {
	Blocks           []BlockName
	Biomes           []BiomeName
	Entities         []string // the number of a kind is its place in the list
	Placeholder      uint32   // the block that is loaded for one that the host does not know
	Air              uint32
	BiomePlaceholder uint32
	Layers           uint8 // of a cell that are the host's: 1 or 2
	Order            Order
	WordBits         uint8  // 16, 32 or 64
	BiomeSideLog2    uint8  // 4: a biome for each block; 2: for each 4×4×4 blocks
	Widths           uint32 // bit n: loads may give cells of n bits; 0: 1 to 16
}

// Binding binds the numbers of a host to those of a world.
type Binding struct{ h *handle }

// Bind binds the numbers of a host. Names that the world does not have are
// registered in one commit.
func (w *World) Bind(known *Known) (*Binding, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	slab := newSlab(known)
	blocks := make([]C.cg_block, len(known.Blocks))
	for i, b := range known.Blocks {
		blocks[i] = C.cg_block{name: slab.add(b.Name), flags: C.uint32_t(b.Flags)}
	}
	biomes := make([]C.cg_biome, len(known.Biomes))
	for i, b := range known.Biomes {
		biomes[i] = C.cg_biome{name: slab.add(b.Name), number: C.uint32_t(b.Number)}
	}
	kinds := make([]C.cg_str, len(known.Entities))
	for i, k := range known.Entities {
		kinds[i] = slab.add(k)
	}
	pinSlice(&pin, slab.bytes)
	d := &C.cg_binding_desc{
		block_count: C.uint32_t(len(blocks)), blocks: pinSlice(&pin, blocks), biomes: pinSlice(&pin, biomes),
		entities: pinSlice(&pin, kinds), biome_count: C.uint32_t(len(biomes)), entity_count: C.uint32_t(len(kinds)),
		placeholder: C.uint32_t(known.Placeholder), air: C.uint32_t(known.Air),
		biome_placeholder: C.uint32_t(known.BiomePlaceholder), layer_count: C.uint8_t(known.Layers),
		order: C.uint8_t(known.Order), word_bits: C.uint8_t(known.WordBits),
		biome_side_log2: C.uint8_t(known.BiomeSideLog2), widths: C.uint32_t(known.Widths),
	}
	d.struct_size = C.uint32_t(unsafe.Sizeof(*d))
	var h C.cg_handle
	e := newError()
	if err := e.result(C.cg_binding_new(w.h.c(), d, &h, e.c())); err != nil {
		return nil, err
	}
	return &Binding{own(h, "binding")}, nil
}

// slab holds many strings in one piece of memory, so that one pin is enough.
type slab struct{ bytes []byte }

func newSlab(k *Known) *slab {
	n := 0
	for _, b := range k.Blocks {
		n += len(b.Name)
	}
	for _, b := range k.Biomes {
		n += len(b.Name)
	}
	for _, s := range k.Entities {
		n += len(s)
	}
	return &slab{make([]byte, 0, n+1)}
}

// add copies a string; the capacity is enough, so nothing moves.
func (s *slab) add(t string) C.cg_str {
	start := len(s.bytes)
	s.bytes = append(s.bytes, t...)
	return C.cg_str{ptr: (*C.char)(unsafe.Pointer(unsafe.SliceData(s.bytes[start:]))), len: C.size_t(len(t))}
}

// IDs returns the world's numbers of the blocks of the binding, by the numbers
// of the host. count is the number of blocks that were bound.
func (b *Binding) IDs(count int) ([]uint64, error) {
	ids := make([]uint64, count)
	e := newError()
	err := e.result(C.cg_binding_ids(b.h.c(), (*C.uint64_t)(unsafe.SliceData(ids)), C.size_t(count), e.c()))
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// Unknown returns the names of the world that the binding does not have, as
// JSON: {"blocks":[…],"entities":[…]}.
func (b *Binding) Unknown() ([]byte, error) {
	var h C.cg_handle
	e := newError()
	if err := e.result(C.cg_binding_unknown(b.h.c(), &h, e.c())); err != nil {
		return nil, err
	}
	return text(h)
}

// Close releases the binding.
func (b *Binding) Close() { b.h.release() }
