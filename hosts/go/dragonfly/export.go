package dragonfly

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/cherrygrove/hosts/go/cherrygrove"
	"github.com/df-mc/dragonfly/server/player/playerdb"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/mcdb"
	"github.com/google/uuid"
)

// Export copies a world into a new one of dragonfly's own provider, and its
// players into a new playerdb if playersDir is not empty. What the other side
// cannot hold is named in the report.
func Export(dir, mcdbDir, playersDir string, conf Config) (report *Report, err error) {
	for _, d := range []string{mcdbDir, playersDir} {
		if entries, err := os.ReadDir(d); d != "" && err == nil && len(entries) > 0 {
			return nil, fmt.Errorf("%s is not empty", d)
		}
	}
	conf.MustExist = true
	p, err := Open(dir, conf)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	p.everyKind = true
	to, err := mcdb.Config{Log: slog.New(slog.DiscardHandler), Blocks: conf.Blocks}.Open(mcdbDir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	report = &Report{}
	dims := []world.Dimension{world.Overworld, world.Nether, world.End}
	for _, d := range world.CustomDimensions() {
		dims = append(dims, d.Dimension)
	}
	for _, dim := range dims {
		if err := p.exportColumns(report, dim, to); err != nil {
			return report, err
		}
	}
	for v, err := range p.w.Properties(spawnPrefix) {
		if err != nil {
			return report, err
		}
		id, err := uuid.Parse(strings.TrimPrefix(string(v.Key), spawnPrefix))
		if err != nil {
			continue
		}
		pos, _, err := p.LoadPlayerSpawnPosition(id)
		if err != nil {
			report.miss("%v", err)
			continue
		}
		if err := to.SavePlayerSpawnPosition(id, pos); err != nil {
			return report, err
		}
		report.Spawns++
	}
	to.SaveSettings(p.set)
	if playersDir == "" {
		return report, nil
	}
	return report, p.exportPlayers(report, playersDir)
}

// exportColumns copies the columns of a dimension.
func (p *Provider) exportColumns(report *Report, dim world.Dimension, to *mcdb.DB) error {
	id, err := p.dimension(dim)
	if err != nil {
		return err
	}
	r, last := dim.Range(), cherrygrove.ColumnAt{}
	for at, err := range p.w.Columns(id) {
		if err != nil {
			report.miss("columns of the %v after %d %d: %v", dim, last.X, last.Z, err)
			return nil
		}
		last = at
		pos := world.ChunkPos{int32(at.X), int32(at.Z)}
		if int64(pos[0]) != at.X || int64(pos[1]) != at.Z {
			report.miss("column %d %d of the %v: dragonfly has no such coordinates", at.X, at.Z, dim)
			continue
		}
		if at.MinY < int32(r[0]>>4) || at.MaxY > int32(r[1]>>4) {
			report.miss("column %d %d of the %v: chunks from %d to %d; dragonfly shows %d to %d", at.X, at.Z, dim,
				at.MinY, at.MaxY, r[0]>>4, r[1]>>4)
		}
		col, l, err := p.loadColumn(pos, dim)
		if errors.Is(err, cherrygrove.ErrAbsent) {
			continue
		}
		if err != nil {
			report.miss("column %d %d of the %v: %v", at.X, at.Z, dim, err)
			continue
		}
		if l.kept > 0 {
			report.miss("column %d %d of the %v: %d blocks and block entities that dragonfly does not know", at.X, at.Z, dim, l.kept)
		}
		if err := to.StoreColumn(pos, dim, col); err != nil {
			return err
		}
		report.Columns++
		report.Entities += len(col.Entities)
		report.BlockEntities += len(col.BlockEntities)
	}
	return nil
}

// exportPlayers copies the players into a playerdb.
func (p *Provider) exportPlayers(report *Report, dir string) error {
	to, err := playerdb.NewProvider(dir)
	if err != nil {
		return err
	}
	worlds := newWorlds()
	defer worlds.close()
	for n, err := range p.w.Detached(nil) {
		if err != nil {
			return errors.Join(err, to.Close())
		}
		if n.Kind != p.playerKind {
			continue
		}
		id := uuid.UUID(n.ID)
		conf, w, err := p.players.load(id, worlds.find)
		if err != nil {
			report.miss("player %v: %v", id, err)
			continue
		}
		if err := to.Save(id, conf, w); err != nil {
			return errors.Join(err, to.Close())
		}
		report.Players++
	}
	return to.Close()
}
