package providertest

import (
	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/player"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
	"github.com/google/uuid"
)

// MixedColumn returns a column like one of a real world, without entities: ten
// sections of some states each. Columns of one seed are equal.
func MixedColumn(dim world.Dimension, seed uint64) *chunk.Column { return mixedColumn(dim, seed) }

// SampleColumn returns a column with something of everything.
func SampleColumn(pos world.ChunkPos, dim world.Dimension, seed uint64) *chunk.Column {
	col := statesColumn(dim, 60, seed)
	low := dim.Range()[0]
	col.Chunk.SetBlock(3, int16(low+100), 4, 1, liquid("water"))
	col.Chunk.SetBiome(5, int16(low+90), 5, 7)
	putChest(col, 1, low+110, 2, "sample")
	for i := range col.BlockEntities {
		b := &col.BlockEntities[i]
		b.Pos = b.Pos.Add(cube.Pos{int(pos[0]) << 4, 0, int(pos[1]) << 4})
		b.Data["more"] = everyType()
	}
	col.Entities = []chunk.Entity{
		textEntity(int64(seed)*10+1, pos, "sample"), namedEntity("minecraft:item", int64(seed)*10+2, pos, ""),
		namedEntity("providertest:ghost", int64(seed)*10+3, pos, "boo"),
	}
	col.Chunk.Compact() // as dragonfly does before it stores one
	col.Tick = 77
	col.ScheduledBlocks = []chunk.ScheduledBlockUpdate{{Pos: at(pos, 2, low, 2), Block: rid("sand"), Tick: 80}}
	return col
}

// SamplePlayer returns a player with a value in each field that is stored.
func SamplePlayer(id uuid.UUID) player.Config { return fullPlayer(id) }

// Diff returns what differs between two columns.
func Diff(got, want *chunk.Column) []string {
	c := &C{}
	func() {
		defer func() {
			if r := recover(); r != nil {
				if _, ok := r.(stop); !ok {
					panic(r)
				}
			}
		}()
		c.same(got, want)
	}()
	return c.failures
}

// DiffPlayers returns what differs between two players.
func DiffPlayers(got, want player.Config) []string {
	c := &C{}
	c.samePlayer(got, want)
	return c.failures
}
