package providertest

import (
	"math"

	"github.com/df-mc/dragonfly/server/entity"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
)

// entityCases are those of entities.
var entityCases = []Case{
	{"entities", entitiesCase},
	{"entity_moves", movesCase},
	{"entity_without_position", noPositionCase},
}

// allEntities are the kinds of dragonfly and those of the cases.
var allEntities = entity.DefaultRegistry.Config().New(append(entity.DefaultRegistry.Types(), ghostType{}))

// ghostType is a kind of entity that dragonfly does not have.
type ghostType struct{ world.EntityType }

// EncodeEntity returns the name of the kind.
func (ghostType) EncodeEntity() string { return "providertest:ghost" }

// textEntity returns a text that floats in a column.
func textEntity(id int64, pos world.ChunkPos, text string) chunk.Entity {
	return namedEntity("dragonfly:text", id, pos, text)
}

// namedEntity returns an entity of a kind, as world.columnTo makes it.
func namedEntity(kind string, id int64, pos world.ChunkPos, text string) chunk.Entity {
	return chunk.Entity{ID: id, Data: map[string]any{
		"identifier": kind, "Pos": []float32{float32(pos[0])*16 + 4.25, 70.5, float32(pos[1])*16 + 11.75},
		"Motion": []float32{0, -0.5, 0}, "Yaw": float32(90), "Pitch": float32(-12.5), "Fire": int16(0), "Age": int16(3),
		"NameTag": text, "Text": text,
	}}
}

// entitiesCase: ids of all sizes, two kinds, NBT of each type.
func entitiesCase(c *C) {
	pos := world.ChunkPos{-20, 31}
	col := plainColumn(world.Overworld, 15)
	for _, id := range []int64{1, -1, math.MaxInt64, math.MinInt64, 0x0123456789abcdef} {
		col.Entities = append(col.Entities, textEntity(id, pos, "text"))
	}
	item := namedEntity("minecraft:item", 99, pos, "")
	for k, v := range everyType() {
		item.Data[k] = v
	}
	col.Entities = append(col.Entities, item)
	c.restart(pos, world.Overworld, col)
}

// movesCase: an entity that moved to the next column is there once, however
// the server orders the two columns of one save.
func movesCase(c *C) {
	a, b := world.ChunkPos{0, 0}, world.ChunkPos{1, 0}
	for _, order := range [][2]bool{{true, false}, {false, true}} {
		dir := c.Dir()
		p := c.Open(dir)
		from, to := plainColumn(world.Overworld, 1), plainColumn(world.Overworld, 2)
		from.Entities = []chunk.Entity{textEntity(5, a, "walks"), textEntity(6, a, "stays")}
		c.store(p, a, world.Overworld, from)
		c.store(p, b, world.Overworld, to)
		p = c.Reopen(dir, p)
		c.load(p, a, world.Overworld)
		c.load(p, b, world.Overworld)
		from.Entities = []chunk.Entity{textEntity(6, a, "stays")}
		to.Entities = []chunk.Entity{textEntity(5, b, "walks")}
		for _, first := range order {
			if first {
				c.store(p, a, world.Overworld, from)
			} else {
				c.store(p, b, world.Overworld, to)
			}
		}
		p = c.Reopen(dir, p)
		c.same(c.load(p, a, world.Overworld), from)
		c.same(c.load(p, b, world.Overworld), to)
	}
}

// noPositionCase: an entity that physics threw to nowhere costs neither the
// column nor the other entities.
func noPositionCase(c *C) {
	pos := world.ChunkPos{2, 2}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for i, p := range [][]float32{{nan, nan, nan}, {inf, 64, -inf}, {1e30, -1e30, 0}, {}, nil} {
		col := plainColumn(world.Overworld, 7)
		lost := textEntity(int64(1000+i), pos, "lost")
		lost.Data["Pos"] = p
		if p == nil {
			delete(lost.Data, "Pos")
		}
		col.Entities = []chunk.Entity{textEntity(int64(i), pos, "sound"), lost}
		c.restart(pos, world.Overworld, col)
	}
}
