package main

import (
	"errors"
	"io"
	"log/slog"

	"github.com/cqdetdev/blazedb"
	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
	"github.com/df-mc/dragonfly/server/world/mcdb"
	"github.com/df-mc/goleveldb/leveldb"
	"github.com/df-mc/goleveldb/leveldb/opt"
)

// mode is how a store is opened.
type mode struct {
	// tiny has memory for less than there is to read.
	tiny bool
	// synced saves wait for the disk.
	synced bool
}

// store is an open store.
type store interface {
	StoreColumn(world.ChunkPos, world.Dimension, *chunk.Column) error
	LoadColumn(world.ChunkPos, world.Dimension) (*chunk.Column, error)
	Close() error
	// setBlock changes one block of a stored column.
	setBlock(world.ChunkPos, cube.Pos, uint32) error
	// loadArea loads the columns around a middle.
	loadArea(world.ChunkPos, int) ([]*chunk.Column, error)
}

type subject interface {
	about() about
	open(dir string, m mode) (store, error)
}

func subjects() []subject {
	return []subject{blaze{}, level{}}
}

func quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(io.Discard, nil))
}

func absent(err error) bool {
	return errors.Is(err, leveldb.ErrNotFound)
}

type blaze struct{}

type blazeStore struct{ *blazedb.DB }

func (blaze) about() about {
	return about{
		Name:    "BlazeDB",
		Role:    "Rival",
		Version: "github.com/cqdetdev/blazedb " + blazeVersion,
		Durability: "Balanced: a save is queued when it returns, and synced in batches; synced: Safe. It cannot be told to write and " +
			"not to sync, so process is Safe too; until synced is until closed",
		Options: "ActiveWorldOptions and SafeOptions of BlazeDB, with deltas; a column is a value; loads return the cached column itself",
	}
}

func (blaze) open(dir string, m mode) (store, error) {
	options := blazedb.ActiveWorldOptions()
	if m.synced {
		options = blazedb.SafeOptions()
		options.EnableDeltaRecords = true
	}
	if m.tiny {
		options.CacheSize = 1
		options.AutoTuneCache = false
	}
	options.Log = quiet()
	db, err := blazedb.Config{Options: options}.Open(dir)
	return blazeStore{db}, err
}

func (s blazeStore) setBlock(p world.ChunkPos, at cube.Pos, state uint32) error {
	return s.StoreBlockDeltas(p, world.Overworld, []blazedb.BlockDelta{{Pos: at, RuntimeID: state}})
}

func (s blazeStore) loadArea(middle world.ChunkPos, radius int) ([]*chunk.Column, error) {
	return s.LoadArea(middle, radius, world.Overworld)
}

type level struct{}

type levelStore struct{ *mcdb.DB }

func (level) about() about {
	return about{
		Name:       "dragonfly's LevelDB",
		Role:       "Rival",
		Version:    "goleveldb, below github.com/df-mc/dragonfly",
		Durability: "a save is in the log when it returns, and never synced: the provider cannot be told to",
		Options:    "as dragonfly opens it; a batch a column, a key a section",
	}
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
