package dragonfly

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/df-mc/dragonfly/server/player"
	"github.com/df-mc/dragonfly/server/player/playerdb"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/mcdb"
	"github.com/df-mc/goleveldb/leveldb"
	"github.com/df-mc/goleveldb/leveldb/opt"
	"github.com/google/uuid"
)

// Report says what an import or an export did.
type Report struct {
	Columns, Entities, BlockEntities, Spawns, Players int
	// Missed are columns, spawns and players that the other side does not
	// have, and why.
	Missed []string
}

// String returns one line, and a line for each thing that was missed.
func (r *Report) String() string {
	s := fmt.Sprintf("%d columns with %d entities and %d block entities, %d spawns, %d players, %d missed",
		r.Columns, r.Entities, r.BlockEntities, r.Spawns, r.Players, len(r.Missed))
	for _, m := range r.Missed {
		s += "\n  missed: " + m
	}
	return s
}

// miss notes what is not on the other side.
func (r *Report) miss(format string, args ...any) {
	r.Missed = append(r.Missed, fmt.Sprintf(format, args...))
}

// Import copies a world of dragonfly's own provider, and the players of its
// playerdb if playersDir is not empty, into a new world. What cannot be read is
// named in the report; the error says that the new world is not whole.
func Import(mcdbDir, playersDir, dir string, conf Config) (report *Report, err error) {
	keys, err := listKeys(mcdbDir)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", mcdbDir, err)
	}
	src, err := mcdb.Config{Log: slog.New(slog.DiscardHandler), Blocks: conf.Blocks}.Open(mcdbDir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", mcdbDir, err)
	}
	defer func() { err = errors.Join(err, closeUntouched(src, mcdbDir)) }()
	report = &Report{}
	var mu sync.Mutex
	conf.OnTrouble = func(err error) {
		mu.Lock()
		defer mu.Unlock()
		report.miss("%v", err)
	}
	p, err := Open(dir, conf)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	p.everyKind = true
	for _, c := range keys.columns {
		col, err := src.LoadColumn(c.pos, c.dim)
		if err != nil {
			report.miss("%v", err)
			continue
		}
		if err := p.StoreColumn(c.pos, c.dim, col); err != nil {
			return report, err
		}
		report.Columns++
		report.Entities += len(col.Entities)
		report.BlockEntities += len(col.BlockEntities)
	}
	for _, id := range keys.players {
		pos, ok, err := src.LoadPlayerSpawnPosition(id)
		if err != nil || !ok {
			report.miss("spawn of player %v: %v", id, err)
			continue
		}
		if err := p.SavePlayerSpawnPosition(id, pos); err != nil {
			return report, err
		}
		report.Spawns++
	}
	if playersDir != "" {
		if err := importPlayers(report, playersDir, p); err != nil {
			return report, err
		}
	}
	from := src.Settings()
	p.set = from
	return report, p.saveSettings(from)
}

// column names a column.
type columnKey struct {
	pos world.ChunkPos
	dim world.Dimension
}

// keys are what a database of mcdb has.
type keys struct {
	columns []columnKey
	players []uuid.UUID
}

// listKeys lists columns and players. mcdb's own iterator ends at the first
// column that it cannot read.
func listKeys(dir string) (*keys, error) {
	db, err := leveldb.OpenFile(filepath.Join(dir, "db"), &opt.Options{ReadOnly: true, ErrorIfMissing: true})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	k, seen := &keys{}, map[columnKey]bool{}
	rows := db.NewIterator(nil, nil)
	defer rows.Release()
	for rows.Next() {
		key := rows.Key()
		if id, ok := strings.CutPrefix(string(key), "player_"); ok {
			if id, err := uuid.Parse(id); err == nil {
				k.players = append(k.players, id)
			}
			continue
		}
		n := len(key)
		if (n != 9 && n != 13) || (key[n-1] != ',' && key[n-1] != 'v') {
			continue // no version of a column
		}
		dim := 0
		if n == 13 {
			dim = int(binary.LittleEndian.Uint32(key[8:]))
		}
		d, ok := world.DimensionByID(dim)
		if !ok {
			continue // a text key of this length
		}
		c := columnKey{world.ChunkPos{int32(binary.LittleEndian.Uint32(key)), int32(binary.LittleEndian.Uint32(key[4:]))}, d}
		if !seen[c] {
			seen[c] = true
			k.columns = append(k.columns, c)
		}
	}
	return k, rows.Error()
}

// closeUntouched closes a world of mcdb that was read, and leaves its level.dat
// as it was: mcdb writes it anew.
func closeUntouched(src *mcdb.DB, dir string) error {
	var errs []error
	kept := map[string][]byte{}
	for _, name := range []string{"level.dat", "levelname.txt"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			kept[name] = b
		}
	}
	errs = append(errs, src.Close())
	for name, b := range kept {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), b, 0o644))
	}
	return errors.Join(errs...)
}

// importPlayers copies the players of a playerdb.
func importPlayers(report *Report, dir string, p *Provider) error {
	ids, err := playerIDs(dir)
	if err != nil {
		return fmt.Errorf("read %s: %w", dir, err)
	}
	from, err := playerdb.NewProvider(dir)
	if err != nil {
		return fmt.Errorf("open %s: %w", dir, err)
	}
	defer from.Close()
	worlds := newWorlds()
	defer worlds.close()
	for _, id := range ids {
		conf, w, err := loadPlayer(from, id, worlds)
		if err != nil {
			report.miss("player %v: %v", id, err)
			continue
		}
		if err := p.players.save(id, conf, w.Dimension()); err != nil {
			return err
		}
		report.Players++
	}
	return nil
}

// loadPlayer loads a player; playerdb panics if an id in it is none.
func loadPlayer(from player.Provider, id uuid.UUID, worlds worlds) (conf player.Config, w *world.World, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return from.Load(id, worlds.find)
}

// playerIDs lists the players of a playerdb.
func playerIDs(dir string) ([]uuid.UUID, error) {
	db, err := leveldb.OpenFile(dir, &opt.Options{ReadOnly: true, ErrorIfMissing: true})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	var ids []uuid.UUID
	rows := db.NewIterator(nil, nil)
	defer rows.Release()
	for rows.Next() {
		if id, err := uuid.FromBytes(slices.Clone(rows.Key())); err == nil {
			ids = append(ids, id)
		}
	}
	return ids, rows.Error()
}

// worlds are empty worlds, because a player provider wants one to say where a
// player is.
type worlds map[world.Dimension]*world.World

func newWorlds() worlds {
	w := worlds{}
	for _, dim := range []world.Dimension{world.Overworld, world.Nether, world.End} {
		w[dim] = world.Config{Dim: dim, Synchronous: true, Log: slog.New(slog.DiscardHandler)}.New()
	}
	return w
}

func (w worlds) find(dim world.Dimension) *world.World { return w[dim] }

func (w worlds) close() {
	for _, each := range w {
		_ = each.Close()
	}
}
