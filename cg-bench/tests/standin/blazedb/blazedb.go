// Package blazedb has the interface of BlazeDB that the program of cg-compare uses. It keeps columns in memory, and in one
// file once it is closed.
package blazedb

import (
	"encoding/gob"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
	"github.com/df-mc/goleveldb/leveldb"
)

const DurabilityFast = 0

type Options struct {
	CacheSize          int64
	WriteBufferSize    int64
	FlushInterval      int
	Durability         int
	AutoTuneCache      bool
	EnableDeltaRecords bool
	Log                *slog.Logger
}

func ActiveWorldOptions() *Options { return &Options{} }

func SafeOptions() *Options { return &Options{} }

type Config struct{ Options *Options }

type BlockDelta struct {
	Pos       cube.Pos
	RuntimeID uint32
}

type DB struct {
	path    string
	columns map[world.ChunkPos]chunk.SerialisedData
}

func (c Config) Open(dir string) (*DB, error) {
	db := &DB{path: filepath.Join(dir, "columns"), columns: map[world.ChunkPos]chunk.SerialisedData{}}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	file, err := os.Open(db.path)
	if os.IsNotExist(err) {
		return db, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return db, gob.NewDecoder(file).Decode(&db.columns)
}

func (db *DB) Close() error {
	file, err := os.Create(db.path)
	if err != nil {
		return err
	}
	if err := gob.NewEncoder(file).Encode(db.columns); err != nil {
		return err
	}
	return file.Close()
}

func (db *DB) StoreColumn(p world.ChunkPos, _ world.Dimension, column *chunk.Column) error {
	db.columns[p] = chunk.Encode(column.Chunk, chunk.DiskEncoding)
	return nil
}

func (db *DB) LoadColumn(p world.ChunkPos, d world.Dimension) (*chunk.Column, error) {
	data, found := db.columns[p]
	if !found {
		return nil, leveldb.ErrNotFound
	}
	c, err := chunk.DiskDecode(data, d.Range())
	return &chunk.Column{Chunk: c}, err
}

func (db *DB) StoreBlockDeltas(p world.ChunkPos, d world.Dimension, deltas []BlockDelta) error {
	column, err := db.LoadColumn(p, d)
	if err != nil {
		return err
	}
	for _, delta := range deltas {
		x, y, z := uint8(delta.Pos[0]&15), int16(delta.Pos[1]), uint8(delta.Pos[2]&15)
		column.Chunk.SetBlock(x, y, z, 0, delta.RuntimeID)
	}
	return db.StoreColumn(p, d, column)
}

func (db *DB) LoadArea(middle world.ChunkPos, radius int, d world.Dimension) ([]*chunk.Column, error) {
	var all []*chunk.Column
	for x := -radius; x <= radius; x++ {
		for z := -radius; z <= radius; z++ {
			column, err := db.LoadColumn(world.ChunkPos{middle[0] + int32(x), middle[1] + int32(z)}, d)
			if err != nil {
				return nil, err
			}
			all = append(all, column)
		}
	}
	return all, nil
}
