package dragonfly

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/cherrygrove/hosts/go/cherrygrove"
	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
)

// networkForms is memory for the network form of chunks.
var networkForms = sync.Pool{New: func() any { b := make([]byte, 0, 64<<10); return &b }}

// decodeChunk makes a chunk out of a column of the store: it writes the
// network form, and dragonfly reads it.
func decodeChunk(col *cherrygrove.Column, blocks world.BlockRegistry, air uint32, r cube.Range) (*chunk.Chunk, error) {
	mem := networkForms.Get().(*[]byte)
	defer networkForms.Put(mem)
	b, n, err := networkForm((*mem)[:0], col, air, r)
	if err != nil {
		return nil, err
	}
	*mem = b
	return chunk.NetworkDecodeBuffer(blocks, bytes.NewBuffer(b), n, r)
}

// networkForm appends the network form of a column and returns the number of
// its sections.
func networkForm(b []byte, col *cherrygrove.Column, air uint32, r cube.Range) ([]byte, int, error) {
	low, n := int32(r[0]>>4), (r.Height()>>4)+1
	sections := col.Sections
	for i := range n {
		y := low + int32(i)
		if len(sections) == 0 || sections[0].Y != y {
			b = append(b, chunk.SubChunkVersion, 0, uint8(y))
			continue
		}
		layers := sections[0].Layers
		sections = sections[1:]
		for len(layers) > 0 {
			if top := &layers[len(layers)-1]; top.Bits != 0 || len(top.Palette) == 0 || top.Palette[0] != air {
				break
			}
			layers = layers[:len(layers)-1]
		}
		b = append(b, chunk.SubChunkVersion, byte(len(layers)), uint8(y))
		for j := range layers {
			var err error
			if b, err = appendCells(b, &layers[j]); err != nil {
				return nil, 0, fmt.Errorf("section %d, layer %d: %w", y, j, err)
			}
		}
	}
	if len(sections) > 0 {
		return nil, 0, fmt.Errorf("section %d is not one of the dimension, or out of order", sections[0].Y)
	}
	b, err := appendBiomes(b, col, low, n)
	return b, n, err
}

// appendBiomes writes the biomes of each section. A section that is not stored,
// or has no biomes, has the biome at the top of the one below it.
func appendBiomes(b []byte, col *cherrygrove.Column, low int32, n int) ([]byte, error) {
	sections, below := col.Sections, uint32(0)
	for i := range n {
		if len(sections) > 0 && sections[0].Y == low+int32(i) {
			c := &sections[0].Biomes
			sections = sections[1:]
			if len(c.Palette) > 0 {
				var err error
				if b, err = appendCells(b, c); err != nil {
					return nil, fmt.Errorf("biomes of section %d: %w", low+int32(i), err)
				}
				below = topOf(c)
				continue
			}
		}
		b = binary.AppendVarint(append(b, 1), int64(int32(below)))
	}
	return b, nil
}

// topOf returns the value at 0, 15, 0.
func topOf(c *cherrygrove.Cells) uint32 {
	if c.Bits == 0 {
		return c.Palette[0]
	}
	per := 32 / int(c.Bits)
	word := binary.LittleEndian.Uint32(c.Words[15/per*4:])
	if i := word >> (15 % per * int(c.Bits)) & (1<<c.Bits - 1); int(i) < len(c.Palette) {
		return c.Palette[i]
	}
	return 0
}

// appendCells writes one storage.
func appendCells(b []byte, c *cherrygrove.Cells) ([]byte, error) {
	bits := int(c.Bits)
	if bits > 16 || len(c.Palette) == 0 || len(c.Words) != wordsLen(bits) || c.Order != cherrygrove.XZY {
		return nil, fmt.Errorf("the store gives cells in a form that was not asked for: %d bits, %d bytes of words, %d values, order %d",
			bits, len(c.Words), len(c.Palette), c.Order)
	}
	b = append(b, byte(bits<<1)|1)
	b = append(b, c.Words...)
	if bits > 0 {
		b = binary.AppendVarint(b, int64(len(c.Palette)))
	}
	for _, v := range c.Palette {
		b = binary.AppendVarint(b, int64(int32(v)))
	}
	return b, nil
}
