package main

import (
	"github.com/cqdetdev/blazedb"
	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
)

var the subject = blaze{}

type blaze struct{}

type blazeStore struct{ *blazedb.DB }

func (blaze) about() about {
	return about{
		Name:    "BlazeDB",
		Role:    "Rival",
		Version: "github.com/cqdetdev/blazedb " + checkout,
		Durability: "Balanced: a save is queued when it returns, and synced in batches; process: Fast without a buffer; synced: " +
			"Safe; until synced is until closed",
		Options: "ActiveWorldOptions and SafeOptions of BlazeDB, with deltas; a column is a value; loads return the cached column itself",
	}
}

func (blaze) open(dir string, m mode) (store, error) {
	options := blazedb.ActiveWorldOptions()
	if m.process {
		options.Durability = blazedb.DurabilityFast
		options.WriteBufferSize, options.FlushInterval = 0, 0
	}
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
