package dragonfly

import (
	"testing"

	"github.com/cherrygrove/hosts/go/dragonfly/providertest"
	"github.com/df-mc/dragonfly/server/world"
)

// TestLoadedColumnIsUnchanged demands that the first store of a column that was
// loaded after a restart writes nothing, with something of everything in it.
func TestLoadedColumnIsUnchanged(t *testing.T) {
	dir := t.TempDir()
	p, _ := openTest(t, dir)
	for _, dim := range []world.Dimension{world.Overworld, world.Nether, world.End} {
		col := providertest.SampleColumn(world.ChunkPos{}, dim, 1)
		col.Entities = col.Entities[:2]
		col.ScheduledBlocks = nil // what is left of their time changes
		if err := p.StoreColumn(world.ChunkPos{}, dim, col); err != nil {
			t.Fatal(err)
		}
		// Entities have one number in all dimensions.
		if dim != world.End {
			col.Entities = nil
			if err := p.StoreColumn(world.ChunkPos{}, dim, col); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p, _ = openTest(t, dir)
	for _, dim := range []world.Dimension{world.Overworld, world.Nether, world.End} {
		col, err := p.LoadColumn(world.ChunkPos{}, dim)
		if err != nil {
			t.Fatal(err)
		}
		written := func() uint64 {
			if err := p.w.Flush(); err != nil {
				t.Fatal(err)
			}
			m, err := p.w.Metrics()
			if err != nil {
				t.Fatal(err)
			}
			return m["written_rows_count"]
		}
		before := written()
		col.Chunk.Compact() // as a save does
		if err := p.StoreColumn(world.ChunkPos{}, dim, col); err != nil {
			t.Fatal(err)
		}
		if n := written() - before; n != 0 {
			t.Errorf("%d rows of the unchanged column of the %v are written", n, dim)
		}
		col.Chunk.SetBlock(1, int16(dim.Range()[0]), 1, 0, 77)
		if err := p.StoreColumn(world.ChunkPos{}, dim, col); err != nil {
			t.Fatal(err)
		}
		if written() == before {
			t.Errorf("a changed column of the %v is not written", dim)
		}
	}
}
