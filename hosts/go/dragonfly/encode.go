package dragonfly

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/cherrygrove/hosts/go/cherrygrove"
	"github.com/df-mc/dragonfly/server/world/chunk"
)

// encoder makes columns of the store out of chunks of dragonfly. Its memory is
// used again.
type encoder struct {
	col     cherrygrove.Column
	layers  []cherrygrove.Cells
	palette []uint32 // of all cells
	nbt     []byte   // of all entities and block entities
	biomes  []cherrygrove.Cells
	left    error // what has no form in the store
	extra   int   // sections with more layers than the game has
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

// release gives the memory back.
func (e *encoder) release() {
	clear(e.layers)
	clear(e.biomes)
	clear(e.col.Sections)
	clear(e.col.BlockEntities)
	clear(e.col.Entities)
	if cap(e.nbt) > 1<<20 {
		e.nbt = nil
	}
	encoders.Put(e)
}

// cells is the number of cells of a section.
const cells = 4096

// wordsLen returns the bytes of the words of a section by its bits.
func wordsLen(bits int) int {
	if bits == 0 {
		return 0
	}
	perWord := 32 / bits
	return (cells + perWord - 1) / perWord * 4
}

var errNetworkForm = errors.New("dragonfly's network form of a chunk is not what was expected")

// sections reads the network form of a chunk into the column: the words stay
// where they are.
func (e *encoder) sections(ch *chunk.Chunk, air uint32) error {
	e.layers, e.palette, e.biomes, e.col.Sections = e.layers[:0], e.palette[:0], e.biomes[:0], e.col.Sections[:0]
	e.extra = 0
	n := len(ch.Sub())
	biomes := chunk.EncodeBiomes(ch, chunk.NetworkEncoding)
	for range n {
		c, rest, err := e.cells(biomes)
		if err != nil {
			return fmt.Errorf("biomes: %w", err)
		}
		biomes = rest
		e.biomes = append(e.biomes, c)
	}
	// A section of air has a layer, as the store gives one: a column that was
	// loaded and has not changed is seen to be unchanged.
	none := cherrygrove.Cells{Palette: []uint32{air}, WordBits: 32, Order: cherrygrove.XZY, SideLog2: 4}
	low := ch.Range()[0] >> 4
	if cap(e.layers) < 3*n {
		e.layers = make([]cherrygrove.Cells, 0, 3*n)
	}
	for i, sub := range ch.Sub() {
		first := len(e.layers)
		if !sub.Empty() {
			b := chunk.EncodeSubChunk(ch, chunk.NetworkEncoding, i)
			if len(b) < 3 || b[0] != chunk.SubChunkVersion {
				return errNetworkForm
			}
			count := int(b[1])
			b = b[3:]
			if count > 2 {
				e.extra++
			}
			for range min(count, 2) {
				c, rest, err := e.cells(b)
				if err != nil {
					return fmt.Errorf("section %d: %w", i+low, err)
				}
				b = rest
				e.layers = append(e.layers, c)
			}
		}
		if len(e.layers) == first {
			e.layers = append(e.layers, none)
		}
		e.col.Sections = append(e.col.Sections, cherrygrove.Section{
			Y: int32(i + low), Layers: e.layers[first:len(e.layers):len(e.layers)], Biomes: e.biomes[i],
		})
	}
	return nil
}

// cells reads one storage: a header byte, words, and a palette of varints.
func (e *encoder) cells(b []byte) (cherrygrove.Cells, []byte, error) {
	if len(b) == 0 {
		return cherrygrove.Cells{}, nil, errNetworkForm
	}
	bits := int(b[0] >> 1)
	if bits == 0x7f { // as the storage before
		if len(e.biomes) == 0 {
			return cherrygrove.Cells{}, nil, errNetworkForm
		}
		return e.biomes[len(e.biomes)-1], b[1:], nil
	}
	if bits > 16 || len(b) < 1+wordsLen(bits) {
		return cherrygrove.Cells{}, nil, errNetworkForm
	}
	n := wordsLen(bits)
	c := cherrygrove.Cells{Bits: uint8(bits), WordBits: 32, Order: cherrygrove.XZY, SideLog2: 4}
	if n > 0 {
		c.Words = b[1 : 1+n]
	}
	b = b[1+n:]
	count := 1
	if bits > 0 {
		v, size := binary.Varint(b)
		if size <= 0 || v < 1 || v > cells {
			return c, nil, errNetworkForm
		}
		count, b = int(v), b[size:]
	}
	at := len(e.palette)
	for range count {
		v, size := binary.Varint(b)
		if size <= 0 {
			return c, nil, errNetworkForm
		}
		e.palette = append(e.palette, uint32(int32(v)))
		b = b[size:]
	}
	c.Palette = e.palette[at:]
	return c, b, nil
}
