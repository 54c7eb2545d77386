package providertest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cherrygrove/hosts/go/dragonfly/internal/smalldisk"
	"github.com/df-mc/dragonfly/server/block"
	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
	"github.com/df-mc/goleveldb/leveldb"
)

// faultCases are those of damage, a full disk, and needless writing.
var faultCases = []Case{
	{"damaged_column", damagedCase},
	{"full_disk", func(c *C) { c.runAlone("full", c.Dir()) }},
	{"unchanged_columns_write_nothing", unchangedCase},
}

// damagedCase: a column that cannot be read is an error and not an absence,
// and playing in its place changes no stored byte of it.
func damagedCase(c *C) {
	d, ok := c.Maker.(Damager)
	if !ok {
		c.Skipf("the maker cannot damage a column")
	}
	dir, pos, sound := c.Dir(), world.ChunkPos{0, 0}, world.ChunkPos{300, 300}
	p := c.Open(dir)
	c.store(p, pos, world.Overworld, statesColumn(world.Overworld, 3000, 8))
	c.store(p, sound, world.Overworld, statesColumn(world.Overworld, 3000, 9))
	if err := p.Close(); err != nil {
		c.Fatalf("close: %v", err)
	}
	if err := d.Damage(dir, pos, sound); err != nil {
		c.Fatalf("damage: %v", err)
	}
	stored := func() []byte {
		b, err := d.Stored(dir, pos)
		if err != nil {
			c.Fatalf("stored bytes: %v", err)
		}
		if len(b) == 0 {
			c.Fatalf("nothing is stored")
		}
		return b
	}
	before := stored()
	p = c.Open(dir)
	if col, err := p.LoadColumn(pos, world.Overworld); err == nil || errors.Is(err, leveldb.ErrNotFound) {
		c.Errorf("load of the damaged column gives %v, %v", col, err)
	}
	c.session(p, world.Overworld, func(_ *world.World, tx *world.Tx) {
		for i := range 16 {
			tx.SetBlock(cube.Pos{i, -60, 5}, block.Gold{}, nil)
			tx.SetBlock(at(sound, i, -60, 5), block.Gold{}, nil)
		}
	})
	if !bytes.Equal(before, stored()) {
		c.Errorf("stored bytes of the damaged column have changed")
	}
	p = c.Open(dir)
	if col, err := p.LoadColumn(pos, world.Overworld); err == nil || errors.Is(err, leveldb.ErrNotFound) {
		c.Errorf("load of the damaged column gives %v, %v after the session", col, err)
	}
	if got := c.load(p, sound, world.Overworld); got.Chunk.Block(0, -60, 5, 0) != rid("gold_block") {
		c.Errorf("the edit of the sound column is lost")
	}
}

// fullProgram: the disk is full while columns unload, and has room later. The
// server does not keep a column that it stored, so each must be there.
func fullProgram(m Maker, dir string, _ func()) error {
	if err := smalldisk.Mount(dir); err != nil {
		return err
	}
	home := filepath.Join(dir, "world")
	if err := os.Mkdir(home, 0o777); err != nil {
		return err
	}
	p, err := openAs(m, home, Host{})
	if err != nil {
		return err
	}
	column := func(i int) *chunk.Column { return statesColumn(world.Overworld, 3000, uint64(i)) }
	pos := func(i int) world.ChunkPos { return world.ChunkPos{int32(i), 0} }
	for i := range 8 {
		if err := p.StoreColumn(pos(i), world.Overworld, column(i)); err != nil {
			return fmt.Errorf("store %d with room: %w", i, err)
		}
	}
	time.Sleep(300 * time.Millisecond)
	ballast, err := smalldisk.Fill(dir)
	if err != nil {
		return err
	}
	const n = 200 // more than a log that was allocated in advance may take
	for i := range n {
		if err := p.StoreColumn(pos(i), world.Overworld, column(1000+i)); err != nil {
			return fmt.Errorf("column %d of %d was refused on the full disk, so the server drops it: %w", i, n, err)
		}
	}
	time.Sleep(300 * time.Millisecond)
	check := func(when string) error {
		for i := range n {
			got, err := p.LoadColumn(pos(i), world.Overworld)
			if err != nil {
				return fmt.Errorf("load %d %s: %w", i, when, err)
			}
			c := &C{}
			c.sameChunk(got.Chunk, column(1000+i).Chunk)
			if len(c.failures) > 0 {
				return fmt.Errorf("column %d %s: %s", i, when, c.text())
			}
		}
		return nil
	}
	if err := check("while the disk is full"); err != nil {
		return err
	}
	if err := os.Remove(ballast); err != nil {
		return err
	}
	time.Sleep(8 * time.Second)
	if err := check("after there is room"); err != nil {
		return err
	}
	if err := p.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if p, err = openAs(m, home, Host{}); err != nil {
		return err
	}
	defer p.Close()
	return check("after a restart")
}

// unchangedCase: dragonfly stores every column again that was ever changed,
// at each save. Ten thousand such stores write nothing worth the name.
func unchangedCase(c *C) {
	if _, err := written(); err != nil {
		c.Skipf("what a process writes is not known here: %v", err)
	}
	dir := c.Dir()
	p := c.Open(dir)
	const columns, rounds = 100, 100
	cols := make([]*chunk.Column, columns)
	for i := range cols {
		cols[i] = mixedColumn(world.Overworld, uint64(i))
		pos := world.ChunkPos{int32(i), 0}
		cols[i].Entities = []chunk.Entity{textEntity(int64(i), pos, "stays")}
		cols[i].Entities[0].Data["more"] = everyType()
		c.store(p, pos, world.Overworld, cols[i])
	}
	p = c.Reopen(dir, p)
	for i := range cols {
		cols[i] = c.load(p, world.ChunkPos{int32(i), 0}, world.Overworld) // as a server has it then
	}
	for i, col := range cols {
		c.store(p, world.ChunkPos{int32(i), 0}, world.Overworld, col)
	}
	p.SaveSettings(p.Settings()) // which ends the save
	// A store may tidy up its files meanwhile, which it does once: the least of
	// three measurements is what the columns take.
	least := int64(math.MaxInt64)
	for range 3 {
		before := quiet()
		for r := range rounds {
			for i, col := range cols {
				col.Tick = int64(r) * 12000
				c.store(p, world.ChunkPos{int32(i), 0}, world.Overworld, col)
			}
		}
		time.Sleep(200 * time.Millisecond)
		after, _ := written()
		if least = min(least, after-before); least <= 64<<10 {
			return
		}
	}
	c.Errorf("%d stores of unchanged columns wrote %d bytes", columns*rounds, least)
}

// quiet waits until this process has written nothing for three seconds, since a
// store may tidy up its files after it was opened. It returns what written does.
func quiet() int64 {
	last, since := int64(-1), time.Now()
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && time.Since(since) < 3*time.Second; {
		if n, _ := written(); n > last+4096 {
			last, since = n, time.Now()
		}
		time.Sleep(50 * time.Millisecond)
	}
	n, _ := written()
	return n
}

// written returns the bytes that this process has written so far.
func written() (int64, error) {
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if n, ok := strings.CutPrefix(line, "wchar: "); ok {
			return strconv.ParseInt(strings.TrimSpace(n), 10, 64)
		}
	}
	return 0, errors.New("no wchar")
}
