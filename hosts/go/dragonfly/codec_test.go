package dragonfly

import (
	"bytes"
	"testing"

	"github.com/cherrygrove/hosts/go/cherrygrove"
	"github.com/cherrygrove/hosts/go/dragonfly/providertest"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
)

// TestCodec demands that a chunk becomes the same chunk through the form of the
// store, without the store, for each width of cells.
func TestCodec(t *testing.T) {
	world.DefaultBlockRegistry.Finalize()
	air := world.DefaultBlockRegistry.AirRuntimeID()
	for _, dim := range []world.Dimension{world.Overworld, world.Nether, world.End} {
		for _, n := range []uint32{1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 256, 257, 4096} {
			ch := chunk.New(world.DefaultBlockRegistry, dim.Range())
			i := uint32(0)
			for y := dim.Range()[0] + 16; y < dim.Range()[0]+48; y++ {
				for x := range uint8(16) {
					for z := range uint8(16) {
						ch.SetBlock(x, int16(y), z, uint8(i>>3&1), 1+i%n)
						ch.SetBiome(x, int16(y), z, i%min(n, 60))
						i++
					}
				}
			}
			e := &encoder{}
			if err := e.sections(ch, air); err != nil {
				t.Fatal(err)
			}
			got, err := decodeChunk(&e.col, world.DefaultBlockRegistry, air, dim.Range())
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range providertest.Diff(&chunk.Column{Chunk: got}, &chunk.Column{Chunk: ch}) {
				t.Errorf("%d states in %v: %s", n, dim, d)
			}
			again := &encoder{}
			if err := again.sections(got, air); err != nil {
				t.Fatal(err)
			}
			for i := range e.col.Sections {
				a, b := e.col.Sections[i], again.col.Sections[i]
				for j := range b.Layers {
					if !bytes.Equal(a.Layers[j].Words, b.Layers[j].Words) {
						t.Fatalf("%d states in %v: the words of section %d differ, so a column that did not change looks changed", n, dim, i)
					}
				}
			}
		}
	}
}

// FuzzCells demands that no bytes make the reader of the network form panic.
func FuzzCells(f *testing.F) {
	ch := providertest.MixedColumn(world.Overworld, 1).Chunk
	f.Add(chunk.EncodeSubChunk(ch, chunk.NetworkEncoding, 3)[3:])
	f.Add(chunk.EncodeBiomes(ch, chunk.NetworkEncoding))
	f.Add([]byte{0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		e := &encoder{}
		for len(b) > 0 {
			c, rest, err := e.cells(b)
			if err != nil {
				return
			}
			e.biomes = append(e.biomes, c)
			mem, err := appendCells(nil, &c)
			if err != nil {
				t.Fatalf("cells that were read cannot be written: %v", err)
			}
			if again, left, err := new(encoder).cells(mem); err != nil || len(left) != 0 || !bytes.Equal(again.Words, c.Words) {
				t.Fatalf("cells that were written cannot be read: %v", err)
			}
			b = rest
		}
		_ = topOf(&cherrygrove.Cells{Palette: []uint32{1}})
	})
}
