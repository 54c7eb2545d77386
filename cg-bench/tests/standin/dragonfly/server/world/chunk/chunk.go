// Package chunk has columns of at most 256 states: air, and others with up to five properties.
package chunk

import (
	"fmt"
	"slices"

	"github.com/df-mc/dragonfly/server/block/cube"
)

const bottom, cells = -64, 384 * 256

type Column struct{ Chunk *Chunk }

type Chunk struct{ states []byte }

type SerialisedData struct{ States []byte }

const DiskEncoding = 0

func New(air uint32, _ cube.Range) *Chunk {
	return &Chunk{slices.Repeat([]byte{byte(air)}, cells)}
}

func at(x uint8, y int16, z uint8) int { return (int(y)-bottom)<<8 | int(x)<<4 | int(z) }

func (c *Chunk) Block(x uint8, y int16, z uint8, _ uint8) uint32 {
	return uint32(c.states[at(x, y, z)])
}

func (c *Chunk) SetBlock(x uint8, y int16, z uint8, _ uint8, state uint32) {
	c.states[at(x, y, z)] = byte(state)
}

func (c *Chunk) Compact() {}

func Encode(c *Chunk, _ int) SerialisedData { return SerialisedData{slices.Clone(c.states)} }

func DiskDecode(data SerialisedData, _ cube.Range) (*Chunk, error) {
	if len(data.States) != cells {
		return nil, fmt.Errorf("a column has %d cells", len(data.States))
	}
	return &Chunk{slices.Clone(data.States)}, nil
}

func StateToRuntimeID(name string, _ map[string]any) (uint32, bool) {
	return 0, name == "minecraft:air"
}

func RuntimeIDToState(id uint32) (string, map[string]any, bool) {
	if id == 0 {
		return "minecraft:air", nil, true
	}
	properties := map[string]any{}
	for number := range id % 6 {
		properties[fmt.Sprint(number)] = number
	}
	return "minecraft:block", properties, true
}
