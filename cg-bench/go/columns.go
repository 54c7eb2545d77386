package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
)

// sections is how many chunks a column has, and bottom the height of the lowest block.
const (
	sections = 24
	bottom   = -64
	magic    = "cg-compare neutral 1\n"
)

// columns are those that cg-compare gathered, with states of this game for its blocks.
type columns struct {
	terrain []*chunk.Column
	empty   *chunk.Column
	saved   uint64
}

// readColumns reads the neutral file: for each block of the palette the number of its properties, and the cells of the columns.
func readColumns(path string) (*columns, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 1<<20)
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(in, head); err != nil || string(head) != magic {
		return nil, fmt.Errorf("%s does not hold neutral columns", path)
	}
	properties, err := numbers[uint32](in)
	if err != nil {
		return nil, err
	}
	states, err := statesFor(properties)
	if err != nil {
		return nil, err
	}
	var count uint32
	if err := binary.Read(in, binary.LittleEndian, &count); err != nil {
		return nil, err
	}
	c := &columns{empty: newColumn(states[0])}
	for range count {
		column, err := readColumn(in, states)
		if err != nil {
			return nil, err
		}
		c.terrain = append(c.terrain, column)
	}
	return c, binary.Read(in, binary.LittleEndian, &c.saved)
}

func numbers[T uint16 | uint32](in io.Reader) ([]T, error) {
	var count uint32
	if err := binary.Read(in, binary.LittleEndian, &count); err != nil {
		return nil, err
	}
	all := make([]T, count)
	return all, binary.Read(in, binary.LittleEndian, all)
}

func newColumn(air uint32) *chunk.Column {
	return &chunk.Column{Chunk: chunk.New(air, world.Overworld.Range())}
}

// cloned is a column of its own with the same blocks.
func cloned(column *chunk.Column) *chunk.Column {
	own, err := chunk.DiskDecode(chunk.Encode(column.Chunk, chunk.DiskEncoding), world.Overworld.Range())
	if err != nil {
		panic(fmt.Sprintf("a column that was just encoded: %v", err))
	}
	return &chunk.Column{Chunk: own}
}

// readColumn fills a column: the palette of each chunk, and its cells, x slowest and y fastest, unless it is of one block.
func readColumn(in io.Reader, states []uint32) (*chunk.Column, error) {
	column := newColumn(states[0])
	for section := range sections {
		palette, err := numbers[uint32](in)
		if err != nil {
			return nil, err
		}
		cells := make([]uint16, 4096)
		if len(palette) > 1 {
			if err := binary.Read(in, binary.LittleEndian, cells); err != nil {
				return nil, err
			}
		}
		for index, cell := range cells {
			state := states[palette[cell]]
			if state == states[0] {
				continue
			}
			x, z, y := uint8(index>>8), uint8(index>>4&15), index&15
			column.Chunk.SetBlock(x, int16(bottom+section*16+y), z, 0, state)
		}
	}
	column.Chunk.Compact()
	return column, nil
}

// statesFor finds a state of the game for each block: air for the first, and for each other one of its own with as many
// properties, so that states take as many bytes as real ones.
func statesFor(properties []uint32) ([]uint32, error) {
	air, found := chunk.StateToRuntimeID("minecraft:air", nil)
	if !found {
		return nil, fmt.Errorf("the game has no air")
	}
	of := map[int][]uint32{}
	for id := range uint32(len(world.Blocks())) {
		if name, held, found := chunk.RuntimeIDToState(id); found && name != "minecraft:air" {
			of[len(held)] = append(of[len(held)], id)
		}
	}
	states := []uint32{air}
	for _, count := range properties[1:] {
		n := int(count)
		// Where no state is left with as many, one with fewer, else with more.
		for ; n > 0 && len(of[n]) == 0; n-- {
		}
		for ; n < 32 && len(of[n]) == 0; n++ {
		}
		if len(of[n]) == 0 {
			return nil, fmt.Errorf("the game has too few states")
		}
		states = append(states, of[n][0])
		of[n] = of[n][1:]
	}
	return states, nil
}

// at is the column of a place, as in cg-compare.
func (c *columns) at(p world.ChunkPos) *chunk.Column {
	index := (int(p[0])%32+32)%32*32 + (int(p[1])%32+32)%32
	return c.terrain[index%len(c.terrain)]
}

// equal compares every block of two columns.
func equal(p world.ChunkPos, is, was *chunk.Column) error {
	for y := int16(bottom); y < bottom+sections*16; y++ {
		for xz := range 256 {
			x, z := uint8(xz>>4), uint8(xz&15)
			if is.Chunk.Block(x, y, z, 0) != was.Chunk.Block(x, y, z, 0) {
				return fmt.Errorf("block %d, %d, %d of the column at %d, %d is not what was saved", x, y, z, p[0], p[1])
			}
		}
	}
	return nil
}
