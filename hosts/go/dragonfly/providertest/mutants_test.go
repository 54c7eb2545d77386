package providertest_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/cherrygrove/hosts/go/dragonfly/providertest"
	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/player"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
	"github.com/df-mc/goleveldb/leveldb"
	"github.com/google/uuid"
)

// mutant is dragonfly's provider with one fault.
type mutant struct {
	world.Provider
	load     func(p world.Provider, pos world.ChunkPos, dim world.Dimension) (*chunk.Column, error)
	store    func(p world.Provider, pos world.ChunkPos, dim world.Dimension, col *chunk.Column) error
	settings func(*world.Settings) *world.Settings
	spawn    func(cube.Pos) cube.Pos
}

func (m *mutant) LoadColumn(pos world.ChunkPos, dim world.Dimension) (*chunk.Column, error) {
	if m.load != nil {
		return m.load(m.Provider, pos, dim)
	}
	return m.Provider.LoadColumn(pos, dim)
}

func (m *mutant) StoreColumn(pos world.ChunkPos, dim world.Dimension, col *chunk.Column) error {
	if m.store != nil {
		return m.store(m.Provider, pos, dim, col)
	}
	return m.Provider.StoreColumn(pos, dim, col)
}

func (m *mutant) Settings() *world.Settings {
	if m.settings != nil {
		return m.settings(m.Provider.Settings())
	}
	return m.Provider.Settings()
}

func (m *mutant) SavePlayerSpawnPosition(id uuid.UUID, pos cube.Pos) error {
	if m.spawn != nil {
		pos = m.spawn(pos)
	}
	return m.Provider.SavePlayerSpawnPosition(id, pos)
}

// mutants are the faults by the cases that must find them.
var mutants = map[string]func() *mutant{
	"absent": func() *mutant {
		return after(func(*chunk.Column) {}, func(err error) error { return errors.New(err.Error()) })
	},
	"states_1":        func() *mutant { return onLoad(spoilCell) },
	"states_2":        func() *mutant { return onLoad(spoilCell) },
	"states_16":       func() *mutant { return onLoad(spoilCell) },
	"states_17":       func() *mutant { return onLoad(spoilCell) },
	"states_256":      func() *mutant { return onLoad(spoilCell) },
	"two_layers":      func() *mutant { return onLoad(func(col *chunk.Column) { clearLayer(col.Chunk, 1) }) },
	"all_biomes":      func() *mutant { return onLoad(func(col *chunk.Column) { col.Chunk.SetBiome(3, 319, 3, 1) }) },
	"range_end":       func() *mutant { return onLoad(clearTop) },
	"range_nether":    func() *mutant { return onLoad(clearTop) },
	"range_overworld": func() *mutant { return onLoad(clearTop) },
	"empty_column": func() *mutant {
		return onStore(func(p world.Provider, pos world.ChunkPos, dim world.Dimension, col *chunk.Column) error {
			if col.Chunk.HighestFilledSubChunk() == 0 {
				return nil
			}
			return p.StoreColumn(pos, dim, col)
		})
	},
	"overwritten_column": func() *mutant {
		return onStore(func(p world.Provider, pos world.ChunkPos, dim world.Dimension, col *chunk.Column) error {
			merged := *col
			if old, err := p.LoadColumn(pos, dim); err == nil {
				merged.BlockEntities = append(slices.Clone(col.BlockEntities), old.BlockEntities...)
			}
			return p.StoreColumn(pos, dim, &merged)
		})
	},
	"block_entities":  func() *mutant { return onLoad(func(col *chunk.Column) { delete(col.BlockEntities[0].Data, "longs") }) },
	"scheduled_ticks": func() *mutant { return onLoad(func(col *chunk.Column) { col.Tick++ }) },
	"entities":        func() *mutant { return onLoad(func(col *chunk.Column) { col.Entities[len(col.Entities)/2].ID >>= 1 }) },
	"entity_without_position": func() *mutant {
		return onStore(func(p world.Provider, pos world.ChunkPos, dim world.Dimension, col *chunk.Column) error {
			for _, e := range col.Entities {
				if at, ok := e.Data["Pos"].([]float32); ok && len(at) == 3 && at[0] != at[0] {
					return errors.New("no position")
				}
			}
			return p.StoreColumn(pos, dim, col)
		})
	},
	"fresh_settings": func() *mutant {
		return &mutant{settings: func(s *world.Settings) *world.Settings { s.Difficulty = nil; return s }}
	},
	"columns_after_save_and_kill": func() *mutant {
		return onStore(func(p world.Provider, pos world.ChunkPos, dim world.Dimension, col *chunk.Column) error {
			if pos[0] == -1 {
				return nil // as one that is kept in memory until Close
			}
			return p.StoreColumn(pos, dim, col)
		})
	},
	"player_spawns": func() *mutant {
		return &mutant{spawn: func(p cube.Pos) cube.Pos { return cube.Pos{int(int16(p[0])), p[1], p[2]} }}
	},
	"negative_and_extreme_coordinates": func() *mutant {
		return places(func(pos world.ChunkPos, dim world.Dimension) (world.ChunkPos, world.Dimension) {
			return world.ChunkPos{pos[0] & 0xffffff, pos[1]}, dim
		})
	},
	"three_worlds_at_once": func() *mutant {
		return places(func(pos world.ChunkPos, _ world.Dimension) (world.ChunkPos, world.Dimension) {
			return pos, world.Overworld
		})
	},
	"changed_after_store": aliasing,
	"damaged_column": func() *mutant {
		return after(func(*chunk.Column) {}, func(error) error { return leveldb.ErrNotFound })
	},
	"closed": func() *mutant {
		return after(func(*chunk.Column) {}, func(error) error { return leveldb.ErrNotFound })
	},
}

// after returns a mutant that changes what a load gives.
func after(change func(*chunk.Column), fail func(error) error) *mutant {
	return &mutant{load: func(p world.Provider, pos world.ChunkPos, dim world.Dimension) (*chunk.Column, error) {
		col, err := p.LoadColumn(pos, dim)
		if err != nil {
			return nil, fail(err)
		}
		change(col)
		return col, nil
	}}
}

func onLoad(change func(*chunk.Column)) *mutant {
	return after(change, func(err error) error { return err })
}

func onStore(f func(world.Provider, world.ChunkPos, world.Dimension, *chunk.Column) error) *mutant {
	return &mutant{store: f}
}

// places returns a mutant that confuses places.
func places(f func(world.ChunkPos, world.Dimension) (world.ChunkPos, world.Dimension)) *mutant {
	return &mutant{
		load: func(p world.Provider, pos world.ChunkPos, dim world.Dimension) (*chunk.Column, error) {
			return p.LoadColumn(f(pos, dim))
		},
		store: func(p world.Provider, pos world.ChunkPos, dim world.Dimension, col *chunk.Column) error {
			pos, dim = f(pos, dim)
			return p.StoreColumn(pos, dim, col)
		},
	}
}

// aliasing keeps what it is given.
func aliasing() *mutant {
	var mu sync.Mutex
	kept := map[world.ChunkPos]*chunk.Column{}
	return &mutant{
		load: func(p world.Provider, pos world.ChunkPos, dim world.Dimension) (*chunk.Column, error) {
			mu.Lock()
			defer mu.Unlock()
			if col, ok := kept[pos]; ok {
				return col, nil
			}
			return p.LoadColumn(pos, dim)
		},
		store: func(p world.Provider, pos world.ChunkPos, dim world.Dimension, col *chunk.Column) error {
			mu.Lock()
			defer mu.Unlock()
			kept[pos] = col
			return p.StoreColumn(pos, dim, col)
		},
	}
}

// spoilCell changes one cell of the lowest section.
func spoilCell(col *chunk.Column) {
	low := int16(col.Chunk.Range()[0])
	col.Chunk.SetBlock(7, low+3, 9, 0, col.Chunk.Block(7, low+3, 9, 0)+1)
}

func clearLayer(ch *chunk.Chunk, layer uint8) {
	for y := ch.Range()[0]; y <= ch.Range()[1]; y++ {
		for x := range uint8(16) {
			for z := range uint8(16) {
				ch.SetBlock(x, int16(y), z, layer, world.DefaultBlockRegistry.AirRuntimeID())
			}
		}
	}
}

func clearTop(col *chunk.Column) {
	for i := range uint8(16) {
		col.Chunk.SetBlock(i, int16(col.Chunk.Range()[1]), 15-i, 0, world.DefaultBlockRegistry.AirRuntimeID())
	}
}

// mutantMaker opens mutants of one case.
type mutantMaker struct {
	mcdbMaker
	of string
}

func (m mutantMaker) Open(dir string, host providertest.Host) (world.Provider, error) {
	p, err := m.mcdbMaker.Open(dir, host)
	if err != nil {
		return nil, err
	}
	mu := mutants[m.of]()
	mu.Provider = p
	return mu, nil
}

// forgetful forgets the effects of players.
type forgetful struct{ mcdbMaker }

func (m forgetful) OpenPlayers(dir string, p world.Provider) (player.Provider, error) {
	inner, err := m.mcdbMaker.OpenPlayers(dir, p)
	return forgetfulPlayers{inner}, err
}

type forgetfulPlayers struct{ player.Provider }

func (f forgetfulPlayers) Save(id uuid.UUID, data player.Config, w *world.World) error {
	data.Effects = nil
	return f.Provider.Save(id, data, w)
}

// TestMutants demands of each case that it finds a fault: of those that mcdb
// fails, mcdb is the control.
func TestMutants(t *testing.T) {
	for _, cs := range providertest.Cases() {
		if _, ok := known[cs.Name]; ok {
			continue
		}
		t.Run(cs.Name, func(t *testing.T) {
			var m providertest.Maker = forgetful{}
			if cs.Name != "players" {
				if mutants[cs.Name] == nil {
					t.Fatal("the case has no control")
				}
				m = mutantMaker{of: cs.Name}
			}
			if failures, skipped := providertest.Try(t, "mutant "+cs.Name, m, cs); failures == "" {
				t.Errorf("the fault is not found; skipped: %q", skipped)
			}
		})
	}
}
