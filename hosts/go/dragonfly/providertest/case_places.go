package providertest

import (
	"fmt"
	"math"
	"sync"

	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
)

// placeCases are those of coordinates, of several worlds, and of memory that
// the server goes on to use.
var placeCases = []Case{
	{"negative_and_extreme_coordinates", coordinatesCase},
	{"three_worlds_at_once", threeWorldsCase},
	{"changed_after_store", aliasCase},
}

// coordinatesCase: columns around the origin and at the ends of the numbers.
// The end of what the game can show is 30 million blocks; beyond that an
// error is right, too, but never the column of another place.
func coordinatesCase(c *C) {
	dir := c.Dir()
	p := c.Open(dir)
	const edge = 30_000_000 / 16
	axis := []int32{0, 1, -1, 255, 256, -256, -257, edge, -edge, math.MaxInt32, math.MinInt32}
	type place struct {
		pos world.ChunkPos
		dim world.Dimension
	}
	want := map[place]*chunk.Column{}
	tag := uint32(1)
	for i, x := range axis {
		for j, z := range axis {
			for _, dim := range []world.Dimension{world.Overworld, dimensions[1+(i+j)%2]} {
				pl := place{world.ChunkPos{x, z}, dim}
				col := plainColumn(dim, tag*2654435761)
				tag++
				far := x > edge || x < -edge || z > edge || z < -edge
				if err := p.StoreColumn(pl.pos, dim, col); err == nil {
					want[pl] = col
				} else if !far {
					c.Errorf("store %v: %v", pl.pos, err)
				}
			}
		}
	}
	check := func() {
		for pl, w := range want {
			before := len(c.failures)
			c.same(c.load(p, pl.pos, pl.dim), w)
			if len(c.failures) > before {
				c.Errorf("… at %v in %v", pl.pos, pl.dim)
			}
		}
	}
	check()
	p = c.Reopen(dir, p)
	check()
}

// threeWorldsCase: three worlds share a provider, and use one place of three
// dimensions at the same time.
func threeWorldsCase(c *C) {
	dir := c.Dir()
	p := c.Open(dir)
	pos := world.ChunkPos{-1, 5}
	problems := make(chan string, 100)
	var wg sync.WaitGroup
	for d, dim := range dimensions {
		for half := range 2 {
			wg.Go(func() {
				at := world.ChunkPos{pos[0] + int32(half), pos[1]}
				for i := range uint32(60) {
					tag := (i*3+uint32(d))*2 + uint32(half) + 1
					if err := p.StoreColumn(at, dim, plainColumn(dim, tag)); err != nil {
						problems <- fmt.Sprintf("store: %v", err)
						return
					}
					got, err := p.LoadColumn(at, dim)
					if err != nil {
						problems <- fmt.Sprintf("load: %v", err)
						return
					}
					inner := &C{}
					inner.sameChunk(got.Chunk, plainColumn(dim, tag).Chunk)
					if len(inner.failures) > 0 {
						problems <- fmt.Sprintf("round %d in %v: %s", i, dim, inner.text())
						return
					}
				}
			})
		}
	}
	wg.Wait()
	close(problems)
	for s := range problems {
		c.Errorf("%s", s)
	}
	p = c.Reopen(dir, p)
	for d, dim := range dimensions {
		for half := range 2 {
			tag := (59*3+uint32(d))*2 + uint32(half) + 1
			c.same(c.load(p, world.ChunkPos{pos[0] + int32(half), pos[1]}, dim), plainColumn(dim, tag))
		}
	}
}

// aliasCase: what the server does with a column after it stored it, or after
// it loaded it, changes nothing that is stored.
func aliasCase(c *C) {
	dir := c.Dir()
	p := c.Open(dir)
	pos := world.ChunkPos{0, 0}
	build := func() *chunk.Column {
		col := statesColumn(world.Overworld, 30, 3)
		putChest(col, 2, 200, 2, "mine")
		col.Entities = []chunk.Entity{textEntity(3, pos, "mine")}
		col.Tick = 5
		col.ScheduledBlocks = []chunk.ScheduledBlockUpdate{{Pos: at(pos, 1, -64, 1), Block: rid("sand"), Tick: 9}}
		return col
	}
	spoil := func(col *chunk.Column) {
		for x := range uint8(16) {
			for z := range uint8(16) {
				col.Chunk.SetBlock(x, -60, z, 0, rid("obsidian"))
				col.Chunk.SetBiome(x, -60, z, 3)
			}
		}
		for _, e := range col.Entities {
			e.Data["NameTag"] = "spoilt"
			if list, ok := e.Data["Pos"].([]float32); ok {
				list[0] = 9
			}
		}
		for _, b := range col.BlockEntities {
			b.Data["CustomName"] = "spoilt"
		}
		for i := range col.ScheduledBlocks {
			col.ScheduledBlocks[i].Tick++
		}
	}
	want, col := build(), build()
	c.store(p, pos, world.Overworld, col)
	spoil(col)
	got := c.load(p, pos, world.Overworld)
	c.same(got, want)
	spoil(got)
	c.same(c.load(p, pos, world.Overworld), want)
	p = c.Reopen(dir, p)
	c.same(c.load(p, pos, world.Overworld), want)
}
