package providertest_test

import (
	"encoding/binary"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/cherrygrove/hosts/go/dragonfly/providertest"
	"github.com/df-mc/dragonfly/server/player"
	"github.com/df-mc/dragonfly/server/player/playerdb"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/mcdb"
	"github.com/df-mc/goleveldb/leveldb"
	"github.com/df-mc/goleveldb/leveldb/util"
	"github.com/google/uuid"
)

// mcdbMaker opens dragonfly's own provider.
type mcdbMaker struct{}

// Open opens a world of LevelDB.
func (mcdbMaker) Open(dir string, host providertest.Host) (world.Provider, error) {
	return mcdb.Config{Log: slog.New(slog.DiscardHandler), Blocks: host.Blocks}.Open(dir)
}

// OpenPlayers opens the players beside it.
func (mcdbMaker) OpenPlayers(dir string, _ world.Provider) (player.Provider, error) {
	return playerdb.NewProvider(filepath.Join(dir, "players"))
}

// column opens the database and calls f with each row of a column.
func (mcdbMaker) column(dir string, pos world.ChunkPos, f func(db *leveldb.DB, key, value []byte) error) error {
	db, err := leveldb.OpenFile(filepath.Join(dir, "db"), nil)
	if err != nil {
		return err
	}
	defer db.Close()
	prefix := binary.LittleEndian.AppendUint32(nil, uint32(pos[0]))
	prefix = binary.LittleEndian.AppendUint32(prefix, uint32(pos[1]))
	rows := db.NewIterator(util.BytesPrefix(prefix), nil)
	defer rows.Release()
	for rows.Next() {
		if err := f(db, rows.Key(), rows.Value()); err != nil {
			return err
		}
	}
	return rows.Error()
}

// Damage cuts the rows of sections after their headers.
func (m mcdbMaker) Damage(dir string, pos, _ world.ChunkPos) error {
	return m.column(dir, pos, func(db *leveldb.DB, key, value []byte) error {
		if len(key) == 10 && key[8] == '/' && len(value) > 40 {
			return db.Put(key, value[:40], nil)
		}
		return nil
	})
}

// Stored returns the rows of a column.
func (m mcdbMaker) Stored(dir string, pos world.ChunkPos) (all []byte, err error) {
	err = m.column(dir, pos, func(_ *leveldb.DB, key, value []byte) error {
		all = append(append(all, key...), value...)
		return nil
	})
	return all, err
}

// known are the cases that mcdb fails in dragonfly v0.11.2.
var known = map[string]string{
	"states_4096":                     "its upgrader of blocks takes some states of today for old ones, and loads others",
	"hostile_block_entity":            "NBT with a nil panics in the encoder, other NBT of plugins makes the column unreadable",
	"entity_moves":                    "an entity that moved is deleted with its old column if the new one was stored first",
	"unknown_entity_survives":         "entities are stored as the server knows them",
	"unknown_block_survives":          "a column with a block that the server does not know cannot be loaded",
	"settings":                        "the ticks of sleep are not stored",
	"settings_after_save_and_kill":    "level.dat is written at Close",
	"full_disk":                       "a column that the disk does not take is an error, and the server drops it",
	"unchanged_columns_write_nothing": "every store is written",
}

func TestMain(m *testing.M) {
	makers := map[string]providertest.Maker{"mcdb": mcdbMaker{}}
	for name := range mutants {
		makers["mutant "+name] = mutantMaker{of: name}
	}
	providertest.Main(m, makers)
}

// TestMcdb runs the suite over dragonfly's own provider, so that the suite
// itself is tested: a case that no provider passes, or each one, would be seen.
func TestMcdb(t *testing.T) { providertest.Run(t, "mcdb", mcdbMaker{}, known) }

// TestPlayerdb shows what the documentation says of dragonfly's own players: one
// that cannot be read is replaced by the new one that dragonfly makes then.
func TestPlayerdb(t *testing.T) {
	dir, id := t.TempDir(), uuid.New()
	db, err := leveldb.OpenFile(dir, nil)
	if err == nil {
		err = errors.Join(db.Put(id[:], []byte("rubbish"), nil), db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	players, err := playerdb.NewProvider(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer players.Close()
	w := world.Config{Synchronous: true}.New()
	defer w.Close()
	find := func(world.Dimension) *world.World { return w }
	if _, _, err := players.Load(id, find); err == nil {
		t.Error("the player is read")
	}
	if err := players.Save(id, providertest.SamplePlayer(id), w); err != nil {
		t.Errorf("the player is not replaced: %v", err)
	}
	if _, _, err := players.Load(id, find); err != nil {
		t.Errorf("the new player: %v", err)
	}
}

// TestCount pins the number of cases that the documentation names.
func TestCount(t *testing.T) {
	if n := len(providertest.Cases()); n != 35 {
		t.Errorf("%d cases, not 35", n)
	}
}
