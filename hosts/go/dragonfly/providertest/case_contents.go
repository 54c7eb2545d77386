package providertest

import (
	"errors"
	"math"
	"strings"

	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
	"github.com/df-mc/goleveldb/leveldb"
)

// contentCases are those of block entities and scheduled ticks.
var contentCases = []Case{
	{"block_entities", blockEntitiesCase},
	{"hostile_block_entity", hostileCase},
	{"scheduled_ticks", ticksCase},
}

// at returns the position of a cell of a column.
func at(pos world.ChunkPos, x, y, z int) cube.Pos {
	return cube.Pos{int(pos[0])<<4 + x, y, int(pos[1])<<4 + z}
}

// putChest sets a chest with NBT in a column at 0, 0 to 15, 15.
func putChest(col *chunk.Column, x, y, z int, name string) {
	id, ok := registry().StateToRuntimeID("minecraft:chest", map[string]any{"minecraft:cardinal_direction": "north"})
	if !ok {
		panic("no chest")
	}
	col.Chunk.SetBlock(uint8(x), int16(y), uint8(z), 0, id)
	col.BlockEntities = append(col.BlockEntities, chunk.BlockEntity{
		Pos:  cube.Pos{x, y, z},
		Data: map[string]any{"id": "Chest", "CustomName": name},
	})
}

// everyType is NBT with each of its types.
func everyType() map[string]any {
	return map[string]any{
		"id": "Chest", "byte": uint8(200), "short": int16(-3), "int": int32(math.MinInt32), "long": int64(math.MaxInt64),
		"float": float32(1.5), "double": math.Pi, "text": "grüße 木", "empty": "",
		"bytes": [4]byte{1, 2, 255, 0}, "ints": [3]int32{-1, 0, 1}, "longs": [2]int64{math.MinInt64, 5},
		"list": []any{"a", "b"}, "none": []any{}, "maps": []any{map[string]any{"k": int32(1)}, map[string]any{}},
		"lists": []any{[]any{int32(1)}, []any{int32(2), int32(3)}}, "map": map[string]any{"deep": map[string]any{"er": uint8(1)}},
	}
}

// blockEntitiesCase: block entities with NBT of each type, at the ends of a
// column, in a place that is not at the origin.
func blockEntitiesCase(c *C) {
	pos := world.ChunkPos{-3, 12}
	col := plainColumn(world.Overworld, 3)
	chest, _ := registry().StateToRuntimeID("minecraft:chest", map[string]any{"minecraft:cardinal_direction": "south"})
	for i, p := range []cube.Pos{at(pos, 0, -64, 0), at(pos, 15, 319, 15), at(pos, 7, 100, 8), at(pos, 8, 100, 8)} {
		col.Chunk.SetBlock(uint8(p[0]&15), int16(p[1]), uint8(p[2]&15), 0, chest)
		data := everyType()
		data["number"] = int32(i)
		col.BlockEntities = append(col.BlockEntities, chunk.BlockEntity{Pos: p, Data: data})
	}
	c.restart(pos, world.Overworld, col)
}

// hostileCase: NBT that a faulty plugin makes never costs the column that it
// is in, nor the block entities beside it.
func hostileCase(c *C) {
	deep := map[string]any{"end": uint8(1)}
	for range 100 {
		deep = map[string]any{"in": deep}
	}
	odd := map[string]any{
		"id": "Chest", "deep": deep, "nul\x00key": "a\x00b", "broken": "\xff\xfe", "nan": math.NaN(),
		"long": strings.Repeat("x", 30000), "many": make([]any, 0),
	}
	bad := map[string]map[string]any{
		"a channel":       {"id": "Chest", "what": make(chan int)},
		"a list of kinds": {"id": "Chest", "what": []any{int32(1), "two"}},
		"a long text":     {"id": "Chest", "what": strings.Repeat("x", 70000)},
		"nil":             {"id": "Chest", "what": nil},
		"no map":          nil,
	}
	dir := c.Dir()
	p := c.Open(dir)
	i := int32(0)
	places := map[string]world.ChunkPos{}
	for what, data := range bad {
		pos := world.ChunkPos{i, 0}
		places[what] = pos
		i++
		col := plainColumn(world.Overworld, 9)
		chest, _ := registry().StateToRuntimeID("minecraft:chest", map[string]any{"minecraft:cardinal_direction": "north"})
		for x, d := range []map[string]any{odd, data, {"id": "Chest", "CustomName": "sound"}} {
			col.Chunk.SetBlock(uint8(x), 50, 0, 0, chest)
			col.BlockEntities = append(col.BlockEntities, chunk.BlockEntity{Pos: at(pos, x, 50, 0), Data: d})
		}
		if err := p.StoreColumn(pos, world.Overworld, col); err != nil {
			c.Errorf("%s: the column is refused, so the server drops it: %v", what, err)
			delete(places, what)
		}
	}
	check := func() {
		for what, pos := range places {
			col, err := p.LoadColumn(pos, world.Overworld)
			if errors.Is(err, leveldb.ErrNotFound) || err != nil {
				c.Errorf("%s: load: %v", what, err)
				continue
			}
			found := 0
			for _, b := range col.BlockEntities {
				if b.Pos == at(pos, 2, 50, 0) && b.Data["CustomName"] == "sound" {
					found++
				}
				if b.Pos == at(pos, 0, 50, 0) {
					found++
					c.sameData("odd NBT", b.Data, odd)
				}
			}
			if found != 2 {
				c.Errorf("%s: %d of 2 sound block entities are there", what, found)
			}
		}
	}
	check()
	p = c.Reopen(dir, p)
	check()
}

// ticksCase: what is left of the time of scheduled ticks survives a restart.
func ticksCase(c *C) {
	pos := world.ChunkPos{6, -6}
	col := plainColumn(world.Overworld, 12)
	col.Tick = 1_000_000
	col.ScheduledBlocks = []chunk.ScheduledBlockUpdate{
		{Pos: at(pos, 0, -64, 0), Block: rid("stone"), Tick: 1_000_001},
		{Pos: at(pos, 15, -64, 3), Block: liquid("water"), Tick: 1_000_040},
		{Pos: at(pos, 15, -64, 3), Block: rid("sand"), Tick: 1_000_040}, // two at one place
		{Pos: at(pos, 4, 319, 3), Block: rid("gravel"), Tick: 1_072_000},
	}
	c.restart(pos, world.Overworld, col)
}
