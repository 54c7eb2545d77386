package dragonfly

import (
	"bytes"
	"os"
	"testing"

	"github.com/cherrygrove/hosts/go/cherrygrove"
	"github.com/cherrygrove/hosts/go/dragonfly/providertest"
	"github.com/df-mc/dragonfly/server/block"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
	"github.com/df-mc/dragonfly/server/world/mcdb"
)

// benchColumns is how many columns a world of the benchmarks has.
const benchColumns = 1000

// opener opens a store for a benchmark.
type opener func(dir string) (world.Provider, error)

var openers = []struct {
	name string
	open opener
}{
	{"mcdb", func(dir string) (world.Provider, error) { return mcdb.Config{Log: quiet}.Open(dir) }},
	{"cherrygrove", func(dir string) (world.Provider, error) { return Open(dir, Config{Log: quiet}) }},
}

// beside runs a benchmark over dragonfly's own provider and over this one, and
// gives the second the ratio to the first: below 1 is faster.
func beside(b *testing.B, f func(b *testing.B, open opener)) {
	_ = block.Stone{}
	var first float64
	for _, o := range openers {
		b.Run(o.name, func(b *testing.B) {
			f(b, o.open)
			each := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			if o.name == "mcdb" {
				first = each
			} else if first > 0 {
				b.ReportMetric(each/first, "x-of-mcdb")
			}
		})
	}
}

// mustOpen opens a store with the default blocks.
func mustOpen(b *testing.B, open opener, dir string) world.Provider {
	b.Helper()
	p, err := open(dir)
	if err != nil {
		b.Fatal(err)
	}
	world.DefaultBlockRegistry.Finalize()
	p.(interface{ SetBlockRegistry(world.BlockRegistry) }).SetBlockRegistry(world.DefaultBlockRegistry)
	return p
}

// benchPos returns the place of a column of the benchmarks.
func benchPos(i int) world.ChunkPos { return world.ChunkPos{int32(i % 32), int32(i / 32)} }

// someColumns returns the columns that fill the worlds of the benchmarks.
func someColumns() []*chunk.Column {
	out := make([]*chunk.Column, 50)
	for i := range out {
		out[i] = providertest.MixedColumn(world.Overworld, uint64(i))
	}
	return out
}

// fillWorld makes a world and closes it, so that nothing of it is in memory.
func fillWorld(b *testing.B, open opener, cols []*chunk.Column) string {
	b.Helper()
	dir := b.TempDir()
	p := mustOpen(b, open, dir)
	for i := range benchColumns {
		if err := p.StoreColumn(benchPos(i), world.Overworld, cols[i%len(cols)]); err != nil {
			b.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		b.Fatal(err)
	}
	return dir
}

// BenchmarkStore stores columns in which one block has changed.
func BenchmarkStore(b *testing.B) {
	beside(b, func(b *testing.B, open opener) {
		cols := someColumns()
		p := mustOpen(b, open, fillWorld(b, open, cols))
		defer p.Close()
		n := uint32(0)
		for b.Loop() {
			col := cols[int(n)%len(cols)]
			col.Chunk.SetBlock(uint8(n&15), 0, uint8(n>>4&15), 0, 100+n>>8%500)
			if err := p.StoreColumn(benchPos(int(n)%benchColumns), world.Overworld, col); err != nil {
				b.Fatal(err)
			}
			n++
		}
	})
}

// BenchmarkLoadReopened loads each column once after the world was opened.
func BenchmarkLoadReopened(b *testing.B) {
	beside(b, func(b *testing.B, open opener) {
		dir := fillWorld(b, open, someColumns())
		p := mustOpen(b, open, dir)
		n := 0
		for b.Loop() {
			if n == benchColumns {
				b.StopTimer()
				if err := p.Close(); err != nil {
					b.Fatal(err)
				}
				p, n = mustOpen(b, open, dir), 0
				b.StartTimer()
			}
			if _, err := p.LoadColumn(benchPos(n), world.Overworld); err != nil {
				b.Fatal(err)
			}
			n++
		}
		_ = p.Close()
	})
}

// BenchmarkLoadAgain loads columns that were loaded before.
func BenchmarkLoadAgain(b *testing.B) {
	beside(b, func(b *testing.B, open opener) {
		p := mustOpen(b, open, fillWorld(b, open, someColumns()))
		defer p.Close()
		n := 0
		for b.Loop() {
			if _, err := p.LoadColumn(benchPos(n%100), world.Overworld); err != nil {
				b.Fatal(err)
			}
			n++
		}
	})
}

// BenchmarkAutosave stores 1,000 columns that have not changed: what dragonfly
// does at each save with each column that was ever changed.
func BenchmarkAutosave(b *testing.B) {
	beside(b, func(b *testing.B, open opener) {
		cols := someColumns()
		p := mustOpen(b, open, fillWorld(b, open, cols))
		defer p.Close()
		for i := range benchColumns {
			if _, err := p.LoadColumn(benchPos(i), world.Overworld); err != nil {
				b.Fatal(err)
			}
		}
		tick := int64(0)
		for b.Loop() {
			tick += 12000
			for i := range benchColumns {
				col := *cols[i%len(cols)]
				col.Tick = tick
				if err := p.StoreColumn(benchPos(i), world.Overworld, &col); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// BenchmarkParts is what the parts of a store and of a load of a column take:
// dragonfly's network form, which is its own, what this package adds to it, and
// the library with the way to it.
func BenchmarkParts(b *testing.B) {
	col, blocks := providertest.MixedColumn(world.Overworld, 1), world.DefaultBlockRegistry
	r, air := world.Overworld.Range(), blocks.AirRuntimeID()
	e := &encoder{}
	run := func(name string, f func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("store/dragonfly", func() error { chunk.Encode(col.Chunk, chunk.NetworkEncoding); return nil })
	run("store/dragonfly-and-ours", func() error { return e.sections(col.Chunk, air) })
	if err := e.sections(col.Chunk, air); err != nil {
		b.Fatal(err)
	}
	form, n, err := networkForm(nil, &e.col, air, r)
	if err != nil {
		b.Fatal(err)
	}
	run("load/dragonfly", func() error {
		_, err := chunk.NetworkDecodeBuffer(blocks, bytes.NewBuffer(form), n, r)
		return err
	})
	run("load/dragonfly-and-ours", func() error { _, err := decodeChunk(&e.col, blocks, air, r); return err })
	p := mustOpen(b, openers[1].open, fillWorld(b, openers[1].open, someColumns())).(*Provider)
	defer p.Close()
	at, err := p.columnAt(benchPos(0), world.Overworld)
	if err != nil {
		b.Fatal(err)
	}
	run("load/library", func() error {
		return p.w.ViewColumn(p.bound.binding, at, func(*cherrygrove.Column) error { return nil })
	})
	run("load/call", func() error { _, err := p.w.Count(cherrygrove.Blocks); return err })
	run("load/all", func() error { _, err := p.LoadColumn(benchPos(0), world.Overworld); return err })
}

// BenchmarkSize prints what a world of 1,000 columns takes on the disk.
func BenchmarkSize(b *testing.B) {
	var first float64
	for _, o := range openers {
		b.Run(o.name, func(b *testing.B) {
			dir := fillWorld(b, o.open, someColumns())
			var n float64
			for b.Loop() {
				n = size(b, dir)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(n/benchColumns, "B/column")
			if o.name == "mcdb" {
				first = n
			} else if first > 0 {
				b.ReportMetric(n/first, "x-of-mcdb")
			}
		})
	}
}

// size returns the bytes of the files in a directory.
func size(b *testing.B, dir string) (n float64) {
	b.Helper()
	root := os.DirFS(dir)
	_ = walk(root, func(s int64) { n += float64(s) })
	return n
}
