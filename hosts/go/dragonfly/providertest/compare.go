package providertest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
	"github.com/df-mc/goleveldb/leveldb"
	"github.com/sandertv/gophertunnel/minecraft/nbt"
)

// store stores a column and ends the case if that fails.
func (c *C) store(p world.Provider, pos world.ChunkPos, dim world.Dimension, col *chunk.Column) {
	if err := p.StoreColumn(pos, dim, col); err != nil {
		c.Fatalf("store %v in %v: %v", pos, dim, err)
	}
}

// load loads a column and ends the case if that fails.
func (c *C) load(p world.Provider, pos world.ChunkPos, dim world.Dimension) *chunk.Column {
	col, err := p.LoadColumn(pos, dim)
	if err != nil {
		c.Fatalf("load %v in %v: %v", pos, dim, err)
	}
	if col == nil || col.Chunk == nil {
		c.Fatalf("load %v in %v: no error and no column", pos, dim)
	}
	return col
}

// absent demands that a column is not there.
func (c *C) absent(p world.Provider, pos world.ChunkPos, dim world.Dimension) {
	if col, err := p.LoadColumn(pos, dim); !errors.Is(err, leveldb.ErrNotFound) {
		c.Errorf("%v in %v is absent, but the load gives %v, %v", pos, dim, col, err)
	}
}

// same demands that a loaded column is the wanted one.
func (c *C) same(got, want *chunk.Column) {
	c.sameChunk(got.Chunk, want.Chunk)
	c.sameEntities(got.Entities, want.Entities)
	c.sameBlockEntities(got.BlockEntities, want.BlockEntities)
	c.sameTicks(got, want)
}

// sameChunk compares blocks of two layers and biomes, cell by cell.
func (c *C) sameChunk(got, want *chunk.Chunk) {
	if got.Range() != want.Range() {
		c.Errorf("range is %v, not %v", got.Range(), want.Range())
		return
	}
	wrong, where := 0, ""
	note := func(what string, x, z uint8, y int, g, w uint32) {
		if wrong++; wrong == 1 {
			where = fmt.Sprintf("%s at %d %d %d is %d, not %d", what, x, y, z, g, w)
		}
	}
	for y := want.Range()[0]; y <= want.Range()[1]; y++ {
		for x := range uint8(16) {
			for z := range uint8(16) {
				for layer := range uint8(2) {
					if g, w := got.Block(x, int16(y), z, layer), want.Block(x, int16(y), z, layer); g != w {
						note(fmt.Sprintf("layer %d", layer), x, z, y, g, w)
					}
				}
				if g, w := got.Biome(x, int16(y), z), want.Biome(x, int16(y), z); g != w {
					note("biome", x, z, y, g, w)
				}
			}
		}
	}
	if wrong > 0 {
		c.Errorf("%d cells differ: %s", wrong, where)
	}
}

// plain returns NBT as its decoder gives it, so that []float32 and []any of
// float32 are one thing.
func (c *C) plain(m map[string]any) map[string]any {
	var buf bytes.Buffer
	if err := nbt.NewEncoderWithEncoding(&buf, nbt.LittleEndian).Encode(m); err != nil {
		c.Fatalf("NBT of the case: %v", err)
	}
	var out map[string]any
	if err := nbt.NewDecoderWithEncoding(&buf, nbt.LittleEndian).Decode(&out); err != nil {
		c.Fatalf("NBT of the case: %v", err)
	}
	return out
}

// sameData compares NBT; a provider may add the keys that it keeps in it.
func (c *C) sameData(what string, got, want map[string]any) {
	g, w := c.plain(got), c.plain(want)
	for _, k := range []string{"UniqueID", "x", "y", "z", "id"} {
		if _, ok := w[k]; !ok {
			delete(g, k)
		}
	}
	if !equal(g, w) {
		c.Errorf("%s is %v, not %v", what, g, w)
	}
}

// equal is reflect.DeepEqual in which a NaN is equal to itself.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, func(x, y any) bool { return equal(x, y) })
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, func(x, y any) bool { return equal(x, y) })
	case float32:
		b, ok := b.(float32)
		return ok && (a == b || (a != a && b != b))
	case float64:
		b, ok := b.(float64)
		return ok && (a == b || (math.IsNaN(a) && math.IsNaN(b)))
	}
	return reflect.DeepEqual(a, b)
}

// sameEntities compares entities by their ids.
func (c *C) sameEntities(got, want []chunk.Entity) {
	if len(got) != len(want) {
		c.Errorf("%d entities, not %d", len(got), len(want))
	}
	for _, w := range want {
		i := slices.IndexFunc(got, func(e chunk.Entity) bool { return e.ID == w.ID })
		if i < 0 {
			c.Errorf("entity %d is missing", w.ID)
			continue
		}
		c.sameData(fmt.Sprintf("entity %d", w.ID), got[i].Data, w.Data)
	}
}

// sameBlockEntities compares block entities by their places.
func (c *C) sameBlockEntities(got, want []chunk.BlockEntity) {
	if len(got) != len(want) {
		c.Errorf("%d block entities, not %d: %v", len(got), len(want), got)
	}
	for _, w := range want {
		i := slices.IndexFunc(got, func(b chunk.BlockEntity) bool { return b.Pos == w.Pos })
		if i < 0 {
			c.Errorf("block entity at %v is missing", w.Pos)
			continue
		}
		c.sameData(fmt.Sprintf("block entity at %v", w.Pos), got[i].Data, w.Data)
	}
}

// sameTicks compares scheduled ticks by the time that is left.
func (c *C) sameTicks(got, want *chunk.Column) {
	type tick struct {
		pos  cube.Pos
		b    uint32
		left int64
	}
	list := func(col *chunk.Column) map[tick]int {
		m := map[tick]int{}
		for _, t := range col.ScheduledBlocks {
			m[tick{t.Pos, t.Block, t.Tick - col.Tick}]++
		}
		return m
	}
	if g, w := list(got), list(want); !maps.Equal(g, w) {
		c.Errorf("scheduled ticks (place, block, time left) are %v, not %v", g, w)
	}
}
