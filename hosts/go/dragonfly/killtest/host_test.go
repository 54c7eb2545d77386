package killtest

import (
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/cherrygrove/hosts/go/dragonfly"
	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/player"
	"github.com/df-mc/dragonfly/server/player/playerdb"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
	"github.com/df-mc/dragonfly/server/world/mcdb"
)

var quiet = slog.New(slog.DiscardHandler)

// ground is where a player stands in dragonfly's flat world.
const ground = -60

// host is a store under a server.
type host struct {
	worlds  world.Provider
	players player.Provider
}

// openHost opens a store by its name: cherrygrove, mcdb, or control, which
// says that a column is stored before it is.
func openHost(name, dir string) (host, error) {
	switch name {
	case "mcdb":
		p, err := mcdb.Config{Log: quiet}.Open(dir)
		if err != nil {
			return host{}, err
		}
		s := p.Settings()
		s.Spawn = cube.Pos{0, ground, 0}
		players, err := playerdb.NewProvider(filepath.Join(dir, "players"))
		return host{p, players}, err
	case "cherrygrove", "control":
		p, err := dragonfly.Open(filepath.Join(dir, "world"), dragonfly.Config{Log: quiet, Spawn: cube.Pos{0, ground, 0}})
		if err != nil {
			return host{}, err
		}
		if name == "control" {
			return host{newLate(p), p.Players()}, nil
		}
		return host{p, p.Players()}, nil
	}
	return host{}, errors.New("no host " + name)
}

// late accepts columns and stores them two seconds later.
type late struct {
	world.Provider
	mu      sync.Mutex
	waiting []func()
}

func newLate(p world.Provider) *late {
	l := &late{Provider: p}
	go func() {
		for range time.Tick(2 * time.Second) {
			l.mu.Lock()
			waiting := l.waiting
			l.waiting = nil
			l.mu.Unlock()
			for _, f := range waiting {
				f()
			}
		}
	}()
	return l
}

// StoreColumn keeps a copy of the column for later.
func (l *late) StoreColumn(pos world.ChunkPos, dim world.Dimension, col *chunk.Column) error {
	c := *col
	c.Chunk = col.Chunk.Clone()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, func() { _ = l.Provider.StoreColumn(pos, dim, &c) })
	return nil
}
