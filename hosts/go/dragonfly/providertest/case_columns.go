package providertest

import (
	"slices"

	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
	"github.com/google/uuid"
)

// columnCases are those of blocks and biomes.
var columnCases = []Case{
	{"absent", absentCase},
	{"states_1", statesCase(1)},
	{"states_2", statesCase(2)},
	{"states_16", statesCase(16)},
	{"states_17", statesCase(17)},
	{"states_256", statesCase(256)},
	{"states_4096", statesCase(4096)},
	{"two_layers", twoLayersCase},
	{"all_biomes", allBiomesCase},
	{"range_overworld", rangeCase(world.Overworld)},
	{"range_nether", rangeCase(world.Nether)},
	{"range_end", rangeCase(world.End)},
	{"empty_column", emptyCase},
	{"overwritten_column", overwrittenCase},
}

var dimensions = []world.Dimension{world.Overworld, world.Nether, world.End}

// absentCase: what was never stored is absent, and no error hides that.
func absentCase(c *C) {
	dir := c.Dir()
	p := c.Open(dir)
	c.store(p, world.ChunkPos{3, 3}, world.Nether, plainColumn(world.Nether, 1))
	for _, dim := range dimensions {
		c.absent(p, world.ChunkPos{0, 0}, dim)
		c.absent(p, world.ChunkPos{-5, 1 << 20}, dim)
	}
	c.absent(p, world.ChunkPos{3, 3}, world.Overworld)
	if pos, ok, err := p.LoadPlayerSpawnPosition(uuid.New()); ok || err != nil {
		c.Errorf("spawn of an unknown player is %v, %v, %v", pos, ok, err)
	}
}

// restart stores a column, and demands it before and after a restart.
func (c *C) restart(pos world.ChunkPos, dim world.Dimension, col *chunk.Column) {
	dir := c.Dir()
	p := c.Open(dir)
	c.store(p, pos, dim, col)
	c.same(c.load(p, pos, dim), col)
	p = c.Reopen(dir, p)
	c.same(c.load(p, pos, dim), col)
}

// statesCase: sections of n states each.
func statesCase(n int) func(*C) {
	return func(c *C) { c.restart(world.ChunkPos{2, -7}, world.Overworld, statesColumn(world.Overworld, n, 1)) }
}

// twoLayersCase: water and other blocks in the second layer, also over air.
func twoLayersCase(c *C) {
	ch := newChunk(world.Overworld)
	water, stone, kelp := liquid("water"), rid("stone"), rid("glass")
	for x := range uint8(16) {
		for z := range uint8(16) {
			ch.SetBlock(x, 10, z, 0, stone)
			if (x+z)%2 == 0 {
				ch.SetBlock(x, 10, z, 1, water)
			}
			if x == z {
				ch.SetBlock(x, 11, z, 1, kelp) // over air
			}
			ch.SetBlock(x, -64, z, 1, water)
		}
	}
	c.restart(world.ChunkPos{0, 0}, world.Overworld, &chunk.Column{Chunk: ch})
}

// liquid returns the runtime id of a full liquid.
func liquid(name string) uint32 {
	id, ok := registry().StateToRuntimeID("minecraft:"+name, map[string]any{"liquid_depth": int32(0)})
	if !ok {
		panic("no liquid " + name)
	}
	return id
}

// allBiomesCase: every biome of the game in every section, one in one section
// alone, and none of them at a place where the blocks are air.
func allBiomesCase(c *C) {
	ids := make([]int, 0, 100)
	for _, b := range world.Biomes() {
		ids = append(ids, b.EncodeBiome())
	}
	slices.Sort(ids)
	ch := newChunk(world.Overworld)
	i := 0
	r := world.Overworld.Range()
	for y := r[0]; y <= r[1]; y++ {
		for x := range uint8(16) {
			for z := range uint8(16) {
				id := ids[i%len(ids)]
				if section := (y - r[0]) >> 4; section >= 20 {
					id = ids[section] // one in each of the highest
				}
				ch.SetBiome(x, int16(y), z, uint32(id))
				i++
			}
		}
	}
	c.restart(world.ChunkPos{9, 9}, world.Overworld, &chunk.Column{Chunk: ch})
}

// rangeCase: the lowest and the highest cells of every section of a dimension.
func rangeCase(dim world.Dimension) func(*C) {
	return func(c *C) {
		ch := newChunk(dim)
		r := dim.Range()
		states := uint32(registry().BlockCount())
		n := uint32(1)
		for y := r[0]; y <= r[1]; y++ {
			if y&15 != 0 && y&15 != 15 {
				continue
			}
			for i := range uint8(16) {
				ch.SetBlock(i, int16(y), 15-i, 0, n*31%states)
				n++
			}
		}
		c.restart(world.ChunkPos{-1, -1}, dim, &chunk.Column{Chunk: ch})
	}
}

// emptyCase: a column of air is not an absent one, or it would be generated
// over what players dug out.
func emptyCase(c *C) {
	for _, dim := range dimensions {
		c.restart(world.ChunkPos{4, 4}, dim, &chunk.Column{Chunk: newChunk(dim)})
	}
}

// overwrittenCase: a column replaces all of the one that was stored before.
func overwrittenCase(c *C) {
	dir := c.Dir()
	p := c.Open(dir)
	pos := world.ChunkPos{1, 1}
	full := statesColumn(world.Overworld, 20, 5)
	putChest(full, 1, 100, 1, "old")
	full.Entities = []chunk.Entity{textEntity(77, pos, "old")}
	full.Tick, full.ScheduledBlocks = 10, []chunk.ScheduledBlockUpdate{{Pos: at(pos, 1, 0, 1), Block: rid("sand"), Tick: 15}}
	c.store(p, pos, world.Overworld, full)
	p = c.Reopen(dir, p)
	c.load(p, pos, world.Overworld) // a server stores what it has loaded
	next := plainColumn(world.Overworld, 6)
	c.store(p, pos, world.Overworld, next)
	c.same(c.load(p, pos, world.Overworld), next)
	p = c.Reopen(dir, p)
	c.same(c.load(p, pos, world.Overworld), next)
}
