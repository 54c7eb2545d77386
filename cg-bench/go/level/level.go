package main

import (
	"runtime/debug"

	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
	"github.com/df-mc/dragonfly/server/world/mcdb"
	"github.com/df-mc/goleveldb/leveldb/opt"
)

var the subject = level{}

type level struct{}

type levelStore struct{ *mcdb.DB }

func (level) about() about {
	return about{
		Name:       "dragonfly's LevelDB",
		Role:       "Rival",
		Version:    "goleveldb" + version("github.com/df-mc/goleveldb") + ", below dragonfly" + version("github.com/df-mc/dragonfly"),
		Durability: "a save is in the log when it returns, and never synced: the provider cannot be told to",
		Options:    "as dragonfly opens it; a batch a column, a key a section",
	}
}

// version is that of a module in this program, after a space.
func version(module string) string {
	if info, found := debug.ReadBuildInfo(); found {
		for _, dep := range info.Deps {
			if dep.Path == module {
				return " " + dep.Version
			}
		}
	}
	return ""
}

func (level) open(dir string, m mode) (store, error) {
	options := &opt.Options{}
	if m.tiny {
		options.BlockCacheCapacity = 12 * opt.MiB
	}
	db, err := mcdb.Config{Log: quiet(), LDBOptions: options}.Open(dir)
	return levelStore{db}, err
}

func (s levelStore) setBlock(p world.ChunkPos, at cube.Pos, state uint32) error {
	column, err := s.LoadColumn(p, world.Overworld)
	if err != nil {
		return err
	}
	column.Chunk.SetBlock(uint8(at[0]&15), int16(at[1]), uint8(at[2]&15), 0, state)
	return s.StoreColumn(p, world.Overworld, column)
}

func (s levelStore) loadArea(middle world.ChunkPos, radius int) ([]*chunk.Column, error) {
	var all []*chunk.Column
	for x := -radius; x <= radius; x++ {
		for z := -radius; z <= radius; z++ {
			column, err := s.LoadColumn(world.ChunkPos{middle[0] + int32(x), middle[1] + int32(z)}, world.Overworld)
			if absent(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			all = append(all, column)
		}
	}
	return all, nil
}
