package dragonfly

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/cherrygrove/hosts/go/cherrygrove"
	"github.com/cherrygrove/hosts/go/dragonfly/providertest"
	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
	"github.com/df-mc/goleveldb/leveldb"
	"github.com/google/uuid"
)

// TestSafe demands that columns, players and spawns of a world that is opened
// as Safe are committed and synced when their stores return. At Balanced they
// are not, so the test would see it.
func TestSafe(t *testing.T) {
	for _, c := range []struct {
		durability cherrygrove.Durability
		is         bool
	}{{cherrygrove.Safe, true}, {cherrygrove.Balanced, false}} {
		dir, id, pos := t.TempDir(), uuid.New(), world.ChunkPos{2, -3}
		p, err := Open(dir, Config{Log: quiet, Durability: c.durability, Group: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		world.DefaultBlockRegistry.Finalize()
		p.SetBlockRegistry(world.DefaultBlockRegistry)
		p.SaveSettings(p.Settings())
		w := newWorlds()
		defer w.close()
		before := metrics(t, p)
		err = errors.Join(p.StoreColumn(pos, world.Overworld, plain()), p.SavePlayerSpawnPosition(id, cube.Pos{1, 2, 3}),
			p.Players().Save(id, providertest.SamplePlayer(id), w[world.Overworld]))
		if err != nil {
			t.Fatal(err)
		}
		m := metrics(t, p)
		if n := m["last_synced_commit_number"] - before["last_commit_number"]; c.is != (n == 3) {
			t.Errorf("durability %d: %d commits are synced", c.durability, n)
		}
		if n := m["pending_submissions_count"]; c.is != (n == 0) {
			t.Errorf("durability %d: %d stores wait", c.durability, n)
		}
		// What a kill leaves is what the files hold now.
		killed := dir + " killed"
		if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		after, _ := openTest(t, killed)
		col, err := after.LoadColumn(pos, world.Overworld)
		_, hasSpawn, errSpawn := after.LoadPlayerSpawnPosition(id)
		_, _, errPlayer := after.Players().Load(id, w.find)
		if !c.is {
			if !errors.Is(err, leveldb.ErrNotFound) || hasSpawn || !errors.Is(errPlayer, ErrNoPlayer) {
				t.Errorf("durability %d: %v, %v, %v", c.durability, err, hasSpawn, errPlayer)
			}
			continue
		}
		if err := errors.Join(err, errSpawn, errPlayer); err != nil || !hasSpawn {
			t.Fatalf("durability %d: %v, %v", c.durability, err, hasSpawn)
		}
		for _, d := range providertest.Diff(col, plain()) {
			t.Error(d)
		}
	}
}

// TestSlowSave demands that a save is one commit although half a second passes
// between two of its columns: an entity that walked from one to the other would
// be gone if the process were killed there.
func TestSlowSave(t *testing.T) {
	p, _ := openTest(t, t.TempDir())
	a, b := world.ChunkPos{}, world.ChunkPos{1, 0}
	walker := chunk.Entity{ID: 5, Data: map[string]any{"identifier": "minecraft:item", "Pos": []float32{1, 80, 1}}}
	store := func(pos world.ChunkPos, entities ...chunk.Entity) {
		t.Helper()
		col := plain()
		col.Entities = entities
		if err := p.StoreColumn(pos, world.Overworld, col); err != nil {
			t.Fatal(err)
		}
	}
	store(a, walker)
	store(b)
	p.SaveSettings(p.Settings())
	before := metrics(t, p)["commits_count"]
	store(a)
	time.Sleep(500 * time.Millisecond)
	store(b, walker)
	if n := metrics(t, p)["commits_count"] - before; n != 0 {
		t.Errorf("the first column is committed without the second")
	}
	p.SaveSettings(p.Settings())
	if n := metrics(t, p)["commits_count"] - before; n != 1 {
		t.Errorf("a save is %d commits", n)
	}
}

// metrics returns the metrics of a world.
func metrics(t *testing.T, p *Provider) map[string]uint64 {
	t.Helper()
	m, err := p.w.Metrics()
	if err != nil {
		t.Fatal(err)
	}
	return m
}
