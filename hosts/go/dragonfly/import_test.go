package dragonfly

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cherrygrove/hosts/go/dragonfly/providertest"
	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/player/playerdb"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/mcdb"
	"github.com/df-mc/goleveldb/leveldb"
	"github.com/google/uuid"
)

var quiet = slog.New(slog.DiscardHandler)

// openMcdb opens a world of dragonfly's own provider.
func openMcdb(t *testing.T, dir string) *mcdb.DB {
	t.Helper()
	db, err := mcdb.Config{Log: quiet}.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// TestImportExport demands that a world of mcdb comes back from a world of ours
// as it was, and that a column that cannot be read is named.
func TestImportExport(t *testing.T) {
	dir := t.TempDir()
	from, players, ours := filepath.Join(dir, "from"), filepath.Join(dir, "players"), filepath.Join(dir, "ours")
	id := uuid.New()
	want := map[columnKey]uint64{}
	db := openMcdb(t, from)
	seed := uint64(1)
	for _, dim := range []world.Dimension{world.Overworld, world.Nether, world.End} {
		for _, pos := range []world.ChunkPos{{0, 0}, {-1, 7}, {100000, -100000}} {
			want[columnKey{pos, dim}] = seed
			if err := db.StoreColumn(pos, dim, providertest.SampleColumn(pos, dim, seed)); err != nil {
				t.Fatal(err)
			}
			seed++
		}
	}
	s := db.Settings()
	s.Name, s.Time, s.Spawn = "Import", 777, cube.Pos{1, 2, 3}
	db.SaveSettings(s)
	if err := db.SavePlayerSpawnPosition(id, cube.Pos{4, 5, 6}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	damage(t, from)
	pdb, err := playerdb.NewProvider(players)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorlds()
	defer w.close()
	if err := pdb.Save(id, providertest.SamplePlayer(id), w[world.Nether]); err != nil {
		t.Fatal(err)
	}
	if err := pdb.Close(); err != nil {
		t.Fatal(err)
	}

	r, err := Import(from, players, ours, Config{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	if r.Columns != 9 || r.Entities != 27 || r.BlockEntities != 9 || r.Spawns != 1 || r.Players != 1 {
		t.Errorf("import: %v", r)
	}
	if len(r.Missed) != 1 || !strings.Contains(r.Missed[0], "55") {
		t.Errorf("the damaged column is not named: %v", r)
	}
	back, backPlayers := filepath.Join(dir, "back"), filepath.Join(dir, "back players")
	if r, err = Export(ours, back, backPlayers, Config{Log: quiet}); err != nil {
		t.Fatal(err)
	}
	if r.Columns != 9 || r.Entities != 27 || r.Spawns != 1 || r.Players != 1 || len(r.Missed) != 0 {
		t.Errorf("export: %v", r)
	}
	db = openMcdb(t, back)
	defer db.Close()
	for k, seed := range want {
		got, err := db.LoadColumn(k.pos, k.dim)
		if err != nil {
			t.Errorf("%v in %v: %v", k.pos, k.dim, err)
			continue
		}
		for _, d := range providertest.Diff(got, providertest.SampleColumn(k.pos, k.dim, seed)) {
			t.Errorf("%v in %v: %s", k.pos, k.dim, d)
		}
	}
	if s := db.Settings(); s.Name != "Import" || s.Time != 777 || s.Spawn != (cube.Pos{1, 2, 3}) {
		t.Errorf("settings: %+v", s)
	}
	if pos, ok, err := db.LoadPlayerSpawnPosition(id); !ok || err != nil || pos != (cube.Pos{4, 5, 6}) {
		t.Errorf("spawn: %v %v %v", pos, ok, err)
	}
	if pdb, err = playerdb.NewProvider(backPlayers); err != nil {
		t.Fatal(err)
	}
	defer pdb.Close()
	conf, at, err := pdb.Load(id, w.find)
	if err != nil || at != w[world.Nether] {
		t.Fatalf("player: %v in %v", err, at)
	}
	for _, d := range providertest.DiffPlayers(conf, providertest.SamplePlayer(id)) {
		t.Error(d)
	}
	if _, err := Export(ours, back, "", Config{Log: quiet}); err == nil {
		t.Error("an export into a directory that is not empty succeeds")
	}
}

// damage adds a column that cannot be read.
func damage(t *testing.T, dir string) {
	t.Helper()
	db, err := leveldb.OpenFile(filepath.Join(dir, "db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for key, value := range map[string]string{",": "*", "/\x00": "\x09\x01\x00rubbish"} {
		if err := db.Put([]byte("\x37\x00\x00\x00\x37\x00\x00\x00"+key), []byte(value), nil); err != nil {
			t.Fatal(err)
		}
	}
}
