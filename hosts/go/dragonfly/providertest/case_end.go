package providertest

import (
	"errors"

	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/goleveldb/leveldb"
	"github.com/google/uuid"
)

// endCases are those of a provider that was closed.
var endCases = []Case{
	{"closed", closedCase},
}

// closedCase: closing twice and calls after the end do not panic. Such calls
// are errors, and none says that a column is absent, because the server would
// generate it.
func closedCase(c *C) {
	dir := c.Dir()
	p := c.Open(dir)
	c.store(p, world.ChunkPos{0, 0}, world.Overworld, plainColumn(world.Overworld, 5))
	s := p.Settings()
	if err := p.Close(); err != nil {
		c.Fatalf("close: %v", err)
	}
	for _, pos := range []world.ChunkPos{{0, 0}, {50, 50}} {
		if col, err := p.LoadColumn(pos, world.Overworld); err == nil || errors.Is(err, leveldb.ErrNotFound) {
			c.Errorf("load gives %v, %v", col, err)
		}
	}
	if err := p.StoreColumn(world.ChunkPos{1, 1}, world.Overworld, plainColumn(world.Overworld, 5)); err == nil {
		c.Errorf("a column is accepted")
	}
	if _, ok, err := p.LoadPlayerSpawnPosition(uuid.New()); err == nil {
		c.Errorf("spawn of a player is %v without an error", ok)
	}
	if err := p.SavePlayerSpawnPosition(uuid.New(), cube.Pos{}); err == nil {
		c.Errorf("a spawn is accepted")
	}
	p.SaveSettings(s)
	if p.Settings() == nil {
		c.Errorf("no settings")
	}
	_ = p.Close() // may say that it is closed
	c.same(c.load(c.Open(dir), world.ChunkPos{0, 0}, world.Overworld), plainColumn(world.Overworld, 5))
}
