package dragonfly

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cherrygrove/hosts/go/cherrygrove"
	"github.com/cherrygrove/hosts/go/dragonfly/internal/nbt"
	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/world/chunk"
)

// contents fills in block entities, entities and scheduled ticks.
func (e *encoder) contents(col *chunk.Column, b *bound, fresh *unbound) {
	var left []error
	if e.extra > 0 {
		left = append(left, fmt.Errorf("layers above the second one, which the game does not have, in %d sections", e.extra))
	}
	e.nbt = e.nbt[:0]
	c := &e.col
	c.Tick = col.Tick
	c.BlockEntities, c.Entities, c.Scheduled = c.BlockEntities[:0], c.Entities[:0], c.Scheduled[:0]
	for _, be := range col.BlockEntities {
		at := cherrygrove.Pos{X: int64(be.Pos[0]), Y: int64(be.Pos[1]), Z: int64(be.Pos[2])}
		if !e.holds(at) {
			left = append(left, fmt.Errorf("the block entity at %v, which is not in the column", be.Pos))
			continue
		}
		if b.placeholder != b.air && col.Chunk.Block(uint8(at.X&15), int16(at.Y), uint8(at.Z&15), 0) == b.placeholder {
			continue // the server makes one for the block that stands for one that it does not know
		}
		data, err := e.encode(be.Data)
		if err != nil {
			left = append(left, fmt.Errorf("of the block entity at %v: %w", be.Pos, err))
		}
		c.BlockEntities = append(c.BlockEntities, cherrygrove.BlockEntity{At: at, NBT: data})
	}
	for _, ent := range col.Entities {
		kind, _ := ent.Data["identifier"].(string)
		if kind == playerName {
			continue // players are stored by themselves
		}
		if kind == "" {
			kind = noKind
		}
		kind = namespaced(kind)
		number, ok := b.kindOf[kind]
		if !ok {
			fresh.kinds = append(fresh.kinds, kind)
			continue
		}
		data, err := e.encode(ent.Data)
		if err != nil {
			left = append(left, fmt.Errorf("of the entity %d, %s: %w", ent.ID, kind, err))
		}
		block, fraction := e.place(ent.Data)
		c.Entities = append(c.Entities, cherrygrove.Entity{ID: entityID(ent.ID), Kind: number, Dimension: c.Dimension,
			Block: block, Fraction: fraction, NBT: data})
	}
	for _, t := range col.ScheduledBlocks {
		at := cherrygrove.Pos{X: int64(t.Pos[0]), Y: int64(t.Pos[1]), Z: int64(t.Pos[2])}
		if !e.holds(at) {
			left = append(left, fmt.Errorf("the scheduled tick at %v, which is not in the column", t.Pos))
			continue
		}
		c.Scheduled = append(c.Scheduled, cherrygrove.Scheduled{At: at, Due: t.Tick, Block: t.Block})
	}
	// dragonfly has some of these in maps. In one order an unchanged column is
	// seen to be unchanged.
	slices.SortStableFunc(c.BlockEntities, func(x, y cherrygrove.BlockEntity) int { return comparePos(x.At, y.At) })
	slices.SortStableFunc(c.Entities, func(x, y cherrygrove.Entity) int { return bytes.Compare(x.ID[:], y.ID[:]) })
	slices.SortStableFunc(c.Scheduled, func(x, y cherrygrove.Scheduled) int {
		return cmp.Or(cmp.Compare(x.Due, y.Due), comparePos(x.At, y.At), cmp.Compare(x.Block, y.Block))
	})
	n, m := len(c.BlockEntities), len(c.Entities)
	c.BlockEntities = slices.CompactFunc(c.BlockEntities, func(x, y cherrygrove.BlockEntity) bool { return x.At == y.At })
	c.Entities = slices.CompactFunc(c.Entities, func(x, y cherrygrove.Entity) bool { return x.ID == y.ID })
	if n -= len(c.BlockEntities); n > 0 {
		left = append(left, fmt.Errorf("%d block entities at blocks that have one already", n))
	}
	if m -= len(c.Entities); m > 0 {
		left = append(left, fmt.Errorf("%d entities with the number of another one", m))
	}
	e.left = errors.Join(left...)
}

// comparePos orders places by y, then z, then x.
func comparePos(a, b cherrygrove.Pos) int {
	return cmp.Or(cmp.Compare(a.Y, b.Y), cmp.Compare(a.Z, b.Z), cmp.Compare(a.X, b.X))
}

// holds says whether a block is in the column.
func (e *encoder) holds(at cherrygrove.Pos) bool {
	c := &e.col
	return at.X>>4 == c.X && at.Z>>4 == c.Z && at.Y>>4 >= int64(c.MinY) && at.Y>>4 <= int64(c.MaxY)
}

// encode writes NBT behind the NBT that is there already.
func (e *encoder) encode(m map[string]any) ([]byte, error) {
	start := len(e.nbt)
	var err error
	e.nbt, err = nbt.Append(e.nbt, m)
	return e.nbt[start:], err
}

// entityID returns the name of an entity of dragonfly in the store: the number
// is the second half of the UUID, as dragonfly has it, and the first half says
// with version 8 that this UUID is of our own making.
func entityID(id int64) (out cherrygrove.ID) {
	copy(out[:], "dfly")
	out[6] = 8 << 4
	binary.LittleEndian.PutUint64(out[8:], uint64(id))
	return out
}

// entityNumber is the way back.
func entityNumber(id cherrygrove.ID) int64 { return int64(binary.LittleEndian.Uint64(id[8:])) }

// position reads the position out of the NBT of an entity.
func position(data map[string]any) (out [3]float32, ok bool) {
	switch list := data["Pos"].(type) {
	case []float32:
		return out, len(list) == 3 && copy(out[:], list) == 3
	case []any:
		if len(list) != 3 {
			return out, false
		}
		for i, v := range list {
			f, is := v.(float32)
			if !is {
				return out, false
			}
			out[i] = f
		}
		return out, true
	}
	return out, false
}

// place returns the block and the place within it. An entity whose position is
// none, or is outside of the column that dragonfly has it in, is at the nearest
// place of the column; its NBT has the position as it is.
func (e *encoder) place(data map[string]any) (cherrygrove.Pos, [3]float32) {
	at, _ := position(data)
	return nearest(at, &e.col.ColumnAt)
}

// nearest returns the place in a column that is nearest to a position.
func nearest(at [3]float32, c *cherrygrove.ColumnAt) (block cherrygrove.Pos, fraction [3]float32) {
	low := [3]int64{c.X << 4, int64(c.MinY) << 4, c.Z << 4}
	high := [3]int64{c.X<<4 | 15, int64(c.MaxY)<<4 | 15, c.Z<<4 | 15}
	var cell [3]int64
	for i, f := range at {
		floor := math.Floor(float64(f))
		switch {
		case !(floor >= float64(low[i])): // also if it is no number
			cell[i] = low[i]
		case floor > float64(high[i]):
			cell[i] = high[i]
		default:
			cell[i] = int64(floor)
			if r := float32(float64(f) - floor); r < 1 {
				fraction[i] = r
			}
		}
	}
	return cherrygrove.Pos{X: cell[0], Y: cell[1], Z: cell[2]}, fraction
}

// readContents reads block entities, entities and scheduled ticks.
func readContents(out *chunk.Column, col *cherrygrove.Column, b *bound) error {
	for _, be := range col.BlockEntities {
		data, err := nbt.Read(be.NBT)
		if err != nil {
			return fmt.Errorf("block entity at %v: %w", be.At, err)
		}
		out.BlockEntities = append(out.BlockEntities, chunk.BlockEntity{Pos: cubePos(be.At), Data: data})
	}
	for i := range col.Entities {
		n := &col.Entities[i]
		data, err := nbt.Read(n.NBT)
		if err != nil {
			return fmt.Errorf("entity %x: %w", n.ID, err)
		}
		kind := b.kinds[n.Kind]
		if id, ok := data["identifier"].(string); kind != noKind && (!ok || namespaced(id) != kind) {
			data["identifier"] = kind
		}
		moved(data, n, &col.ColumnAt)
		out.Entities = append(out.Entities, chunk.Entity{ID: entityNumber(n.ID), Data: data})
	}
	for _, s := range col.Scheduled {
		out.ScheduledBlocks = append(out.ScheduledBlocks, chunk.ScheduledBlockUpdate{Pos: cubePos(s.At), Block: s.Block, Tick: s.Due})
	}
	return nil
}

// moved gives an entity the position that the store has of it, if that is not
// the one that its NBT stands for: another program has moved it.
func moved(data map[string]any, n *cherrygrove.Entity, c *cherrygrove.ColumnAt) {
	at, _ := position(data)
	if block, fraction := nearest(at, c); block == n.Block && fraction == n.Fraction {
		return
	}
	data["Pos"] = []any{float32(n.Block.X) + n.Fraction[0], float32(n.Block.Y) + n.Fraction[1], float32(n.Block.Z) + n.Fraction[2]}
}

func cubePos(p cherrygrove.Pos) cube.Pos { return cube.Pos{int(p.X), int(p.Y), int(p.Z)} }
