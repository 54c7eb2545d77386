package providertest

import (
	"log/slog"
	"slices"

	"github.com/df-mc/dragonfly/server/block"
	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/entity"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
)

// keptCases are those of content that the server does not know.
var keptCases = []Case{
	{"unknown_entity_survives", unknownEntityCase},
	{"unknown_block_survives", unknownBlockCase},
}

// session opens a world over a provider, edits it, and closes both.
func (c *C) session(p world.Provider, dim world.Dimension, edit func(w *world.World, tx *world.Tx)) {
	w := world.Config{Log: slog.New(slog.DiscardHandler), Provider: p, Dim: dim, Synchronous: true, SaveInterval: -1, Entities: entity.DefaultRegistry}.New()
	<-w.Do(func(tx *world.Tx) { edit(w, tx) }).Done()
	w.Save()
	if err := w.Close(); err != nil {
		c.Errorf("close the world: %v", err)
	}
}

// unknownEntityCase: an entity of a plugin that is not loaded today is there
// when it is loaded again, also if the column was changed meanwhile.
func unknownEntityCase(c *C) {
	dir := c.Dir()
	pos := world.ChunkPos{0, 0}
	p := c.Open(dir)
	col := plainColumn(world.Overworld, 1)
	ghost := namedEntity("providertest:ghost", 8, pos, "boo")
	col.Entities = []chunk.Entity{ghost, textEntity(9, pos, "known")}
	c.store(p, pos, world.Overworld, col)
	if err := p.Close(); err != nil {
		c.Fatalf("close: %v", err)
	}
	c.session(c.OpenAs(dir, Host{Entities: entity.DefaultRegistry}), world.Overworld, func(_ *world.World, tx *world.Tx) {
		tx.SetBlock(cube.Pos{3, 90, 3}, block.Stone{}, nil)
	})
	got := c.load(c.Open(dir), pos, world.Overworld)
	if got.Chunk.Block(3, 90, 3, 0) != rid("stone") {
		c.Errorf("the block that was set is not there")
	}
	if i := slices.IndexFunc(got.Entities, func(e chunk.Entity) bool { return e.ID == 8 }); i < 0 {
		c.Errorf("the entity of the unknown kind is gone")
	} else {
		c.sameData("the entity", got.Entities[i].Data, ghost.Data)
	}
	if len(got.Entities) != 2 {
		c.Errorf("%d entities, not 2", len(got.Entities))
	}
}

// unknownBlockCase: a column with a block of a plugin that is not loaded today
// can be played in, and the block is there when it is loaded again.
func unknownBlockCase(c *C) {
	registry() // hashes of blocks are made by the default registry, which must be whole
	with := world.NewBlockRegistry()
	with.RegisterBlockState(world.BlockState{Name: "providertest:lamp", Properties: map[string]any{"lit": true}})
	with.RegisterBlockState(world.BlockState{Name: "providertest:lamp", Properties: map[string]any{"lit": false}})
	with.Finalize()
	lamp := func(lit bool) uint32 {
		id, ok := with.StateToRuntimeID("providertest:lamp", map[string]any{"lit": lit})
		if !ok {
			c.Fatalf("no lamp")
		}
		return id
	}
	stone, _ := with.StateToRuntimeID("minecraft:stone", nil)
	dir, pos := c.Dir(), world.ChunkPos{0, 0}
	p := c.OpenAs(dir, Host{Blocks: with})
	ch := chunk.New(with, world.Overworld.Range())
	for i := range uint8(16) {
		ch.SetBlock(i, 10, 0, 0, stone)
		ch.SetBlock(i, 11, 0, 0, lamp(i%2 == 0))
	}
	col := &chunk.Column{Chunk: ch}
	col.BlockEntities = []chunk.BlockEntity{{Pos: cube.Pos{4, 11, 0}, Data: map[string]any{"id": "Lamp", "oil": int32(7)}}}
	c.store(p, pos, world.Overworld, col)
	if err := p.Close(); err != nil {
		c.Fatalf("close: %v", err)
	}
	c.session(c.Open(dir), world.Overworld, func(_ *world.World, tx *world.Tx) {
		if _, ok := tx.Block(cube.Pos{5, 10, 0}).(block.Stone); !ok {
			c.Errorf("the known blocks of the column are not shown")
		}
		tx.SetBlock(cube.Pos{5, 9, 0}, block.Stone{}, nil)
		tx.SetBlock(cube.Pos{6, 11, 0}, block.Stone{}, nil) // over a lamp
	})
	got := c.load(c.OpenAs(dir, Host{Blocks: with}), pos, world.Overworld)
	for i := range uint8(16) {
		want := lamp(i%2 == 0)
		if i == 6 {
			want = stone
		}
		if b := got.Chunk.Block(i, 11, 0, 0); b != want {
			c.Errorf("block %d is %d, not %d", i, b, want)
		}
	}
	if got.Chunk.Block(5, 9, 0, 0) != stone {
		c.Errorf("the block that was set is not there")
	}
	c.sameBlockEntities(got.BlockEntities, col.BlockEntities)
}
