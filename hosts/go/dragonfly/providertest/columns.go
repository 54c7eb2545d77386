package providertest

import (
	"math/rand/v2"
	"slices"

	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"

	_ "github.com/df-mc/dragonfly/server/block" // registers the blocks
	_ "github.com/df-mc/dragonfly/server/world/biome"
)

// registry returns the block registry that most cases use.
func registry() world.BlockRegistry {
	world.DefaultBlockRegistry.Finalize()
	return world.DefaultBlockRegistry
}

// rid returns the runtime id of a block of the game without properties.
func rid(name string) uint32 {
	id, ok := registry().StateToRuntimeID("minecraft:"+name, nil)
	if !ok {
		panic("no block " + name)
	}
	return id
}

// newChunk returns a chunk of air.
func newChunk(dim world.Dimension) *chunk.Chunk {
	return chunk.New(registry(), dim.Range())
}

// statesColumn returns a column with n states in each of the two sections
// that it fills: the lowest and one in the middle.
func statesColumn(dim world.Dimension, n int, seed uint64) *chunk.Column {
	ch := newChunk(dim)
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	count := uint32(registry().BlockCount())
	states := make([]uint32, 0, n)
	for len(states) < n {
		if s := r.Uint32N(count); !slices.Contains(states, s) && s != registry().AirRuntimeID() {
			states = append(states, s)
		}
	}
	low := int16(dim.Range()[0])
	for _, base := range []int16{low, low + 64} {
		i := 0
		for x := range uint8(16) {
			for z := range uint8(16) {
				for y := range int16(16) {
					s := states[r.IntN(n)]
					if i < n {
						s = states[i] // each state at least once
					}
					ch.SetBlock(x, base+y, z, 0, s)
					i++
				}
			}
		}
	}
	ch.Compact()
	return &chunk.Column{Chunk: ch}
}

// plainColumn returns a column that the tag makes different from others.
func plainColumn(dim world.Dimension, tag uint32) *chunk.Column {
	ch := newChunk(dim)
	low := int16(dim.Range()[0])
	stone, dirt := rid("stone"), rid("dirt")
	for x := range uint8(16) {
		for z := range uint8(16) {
			ch.SetBlock(x, low, z, 0, stone)
			if tag>>(uint32(x)|uint32(z&1)<<4)&1 == 1 {
				ch.SetBlock(x, low+1, z, 0, dirt)
			}
		}
	}
	return &chunk.Column{Chunk: ch}
}

// mixedColumn returns a column like one of a real world: ten sections with
// some tens of states, deterministic in its seed.
func mixedColumn(dim world.Dimension, seed uint64) *chunk.Column {
	ch := newChunk(dim)
	r := rand.New(rand.NewPCG(seed, 7))
	names := []string{"stone", "dirt", "gravel", "andesite", "diorite", "granite", "coal_ore", "iron_ore", "clay", "sand"}
	ids := make([]uint32, len(names))
	for i, n := range names {
		ids[i] = rid(n)
	}
	low := int16(dim.Range()[0])
	for y := low; y < low+min(160, int16(dim.Range().Height())); y++ {
		for x := range uint8(16) {
			for z := range uint8(16) {
				k := 0
				if v := r.IntN(100); v < 3*len(ids) {
					k = v / 3
				}
				ch.SetBlock(x, y, z, 0, ids[k])
			}
		}
	}
	ch.Compact()
	return &chunk.Column{Chunk: ch}
}
