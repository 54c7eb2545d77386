package main

import (
	"errors"
	"io"
	"log/slog"

	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
	"github.com/df-mc/goleveldb/leveldb"
)

// mode is how a store is opened.
type mode struct {
	// tiny has memory for less than there is to read.
	tiny bool
	// process saves are written when they return, and not synced.
	process bool
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

// subject is a sort of store; each program has one, which it calls the.
type subject interface {
	about() about
	open(dir string, m mode) (store, error)
}

func quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(io.Discard, nil))
}

func absent(err error) bool {
	return errors.Is(err, leveldb.ErrNotFound)
}
