// Package dragonfly stores the worlds of dragonfly servers in CherryGrove.
//
//	p, err := dragonfly.Open("world", dragonfly.Config{})
//	conf.WorldProvider, conf.PlayerProvider = p, p.Players()
//
// One Provider is for all dimensions and players of a server. What it promises
// beyond what dragonfly's own provider does:
//
//   - A column that cannot be read is an error and never an absence, so it is
//     not generated anew, and nothing is written over it.
//   - A column that the disk does not take now is held in memory and written
//     when there is room.
//   - Columns, entities and settings of one save are one commit, in the bounds
//     that Config.Group names.
//   - Blocks and kinds of entity that the server does not know survive it.
package dragonfly

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cherrygrove/hosts/go/cherrygrove"
	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/entity"
	"github.com/df-mc/dragonfly/server/player"
	"github.com/df-mc/dragonfly/server/world"
)

// Damage says what a load of a column does if a part of it is damaged.
type Damage uint8

const (
	// Refuse gives an error: players see an empty column, and nothing that
	// they do there is stored.
	Refuse Damage = iota
	// Partial gives the sections that are sound. The damaged ones hold the
	// block that stands for what cannot be shown, and what is stored of them
	// is not touched.
	Partial
)

// Config is how a Provider is opened. The zero value is good.
type Config struct {
	// Log gets what the store says; nil stands for slog.Default().
	Log *slog.Logger
	// Blocks are those of the server until it calls SetBlockRegistry; nil
	// stands for world.DefaultBlockRegistry.
	Blocks world.BlockRegistry
	// Entities must be what the server has in its own Config. Entities of
	// other kinds are kept and not shown. The zero value stands for
	// entity.DefaultRegistry, as it does there.
	Entities world.EntityRegistry
	// Durability says what a commit survives. The default is Balanced: a kill
	// takes at most the last moments since the last save, a power cut about a
	// second more. At Safe, each store is a commit that StoreColumn and the
	// server's tick wait for, and one that the disk does not take is an error.
	Durability cherrygrove.Durability
	// OnDamage says what happens with columns that are damaged in part.
	OnDamage Damage
	// OnTrouble is called with what dragonfly has no way to learn: that
	// settings could not be saved, that columns are held because the disk
	// takes nothing, that NBT was left out. It is called from any goroutine.
	OnTrouble func(error)
	// CacheBytes is the memory for chunks; 0 stands for 128 MiB.
	CacheBytes uint64
	// HeldBytes is the memory for what the disk does not take; 0 stands for
	// 256 MiB. StoreColumn fails when it is used up.
	HeldBytes uint64
	// MinFree is the room in bytes that stays free on the disk; 0 stands for a
	// twentieth of it, at most 1 GiB.
	MinFree uint64
	// Group is how long stores are collected for one commit, from the first of
	// them on; 0 stands for 2 s. Stores that follow each other within a tenth of
	// it are collected for as long again, so that the commit of what unloaded
	// before a save does not end within the save. SaveSettings, which ends each
	// save, ends the commit too. A save that takes longer, or has more than 4,096
	// changed columns or 64 MiB, is several commits, and an entity that walked
	// between two of them is gone if the process is killed there. A kill also
	// takes what unloaded within this time, or within twice of it where columns
	// unload all the time.
	Group time.Duration
	// Spawn is the spawn of a world that has none yet; the zero value stands
	// for 0, 32767, 0, as dragonfly's own provider has it.
	Spawn cube.Pos
	// ReadOnly opens the world for reading.
	ReadOnly bool
	// MustExist refuses to create a world.
	MustExist bool
}

// Provider is a world of CherryGrove as dragonfly uses it. All methods are
// safe to be called at once.
type Provider struct {
	conf    Config
	w       *cherrygrove.World
	set     *world.Settings
	closed  atomic.Bool
	trouble *trouble
	players players

	mu    sync.RWMutex // of the binding: users read, those who bind anew write
	bound *bound

	dimMu sync.Mutex
	dims  map[world.Dimension]uint32

	playerKind uint32
	everyKind  bool // entities of all kinds are shown, as for an export
}

var _ world.Provider = (*Provider)(nil)
var _ player.Provider = (*players)(nil)

// Game is the game whose names of blocks the worlds have.
const Game = "bedrock"

// Open opens the world in a directory, or creates it.
func Open(dir string, conf Config) (*Provider, error) {
	if conf.Log == nil {
		conf.Log = slog.Default()
	}
	conf.Log = conf.Log.With("provider", "cherrygrove")
	if len(conf.Entities.Types()) == 0 {
		conf.Entities = entity.DefaultRegistry
	}
	if conf.Spawn == (cube.Pos{}) {
		conf.Spawn = cube.Pos{0, math.MaxInt16, 0}
	}
	if conf.Group == 0 {
		conf.Group = 2 * time.Second
	}
	mode := cherrygrove.OpenOrCreate
	switch {
	case conf.ReadOnly:
		mode = cherrygrove.OpenReadOnly
	case conf.MustExist:
		mode = cherrygrove.MustExist
	}
	w, err := cherrygrove.Open(dir, &cherrygrove.Options{
		Mode: mode, Durability: conf.Durability, Partial: conf.OnDamage == Partial, CacheBytes: conf.CacheBytes,
		HeldBytes: conf.HeldBytes, MinFree: conf.MinFree, Group: conf.Group, Game: Game,
	})
	if err != nil {
		return nil, fmt.Errorf("open world %s: %w", dir, err)
	}
	p := &Provider{conf: conf, w: w, dims: map[world.Dimension]uint32{}}
	p.players.p = p
	if err := p.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("open world %s: %w", dir, err), w.Close())
	}
	p.trouble = watch(p)
	return p, nil
}

// prepare finds or registers the names that a Provider needs always.
func (p *Provider) prepare() error {
	for _, dim := range []world.Dimension{world.Overworld, world.Nether, world.End} {
		if _, err := p.dimension(dim); err != nil {
			return err
		}
	}
	kind, err := p.register(cherrygrove.Entities, playerName)
	if err != nil {
		return err
	}
	p.playerKind = kind
	if p.set, err = p.loadSettings(); err != nil {
		return err
	}
	return nil
}

// register returns the number of a name, which it registers if it has to.
func (p *Provider) register(list cherrygrove.List, name string) (uint32, error) {
	ids, err := p.w.Find(list, name)
	if err == nil && ids[0] == cherrygrove.NoID {
		if p.conf.ReadOnly {
			return unknown, nil
		}
		ids, err = p.w.Register(list, []cherrygrove.Name{{Name: name}})
	}
	if err != nil {
		return 0, err
	}
	return uint32(ids[0]), nil
}

// unknown is the number of a name that a world opened for reading does not have.
const unknown = ^uint32(0)

// World returns the world itself, for what dragonfly has no interface for:
// ticks of the tiers, checkpoints, metrics, verification.
func (p *Provider) World() *cherrygrove.World { return p.w }

// Players returns the provider of the players of the same world. Its Close
// does nothing; the world is closed by the Provider.
func (p *Provider) Players() player.Provider { return &p.players }

// SetBlockRegistry gives the provider the blocks of the server, as
// world.Config.New does. A failure is reported to OnTrouble; loads and stores
// try again, and return it while it lasts.
func (p *Provider) SetBlockRegistry(blocks world.BlockRegistry) {
	if blocks == nil {
		blocks = world.DefaultBlockRegistry
	}
	blocks.Finalize()
	if err := p.setBlocks(blocks); err != nil {
		p.report(fmt.Errorf("bind blocks: %w", err))
	}
}

func (p *Provider) setBlocks(blocks world.BlockRegistry) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bound != nil && p.bound.blocks == blocks {
		return nil
	}
	p.conf.Blocks = blocks
	if err := p.bindLocked(nil, nil); err != nil {
		if p.bound != nil {
			p.bound.binding.Close()
			p.bound = nil // its numbers are not those of the server
		}
		return err
	}
	return nil
}

// Close writes what is not written yet and closes the world. It returns what
// could not be written.
func (p *Provider) Close() error {
	if p.closed.Swap(true) {
		return nil
	}
	p.trouble.stop()
	p.mu.Lock()
	if p.bound != nil {
		p.bound.binding.Close()
		p.bound = nil
	}
	p.mu.Unlock()
	return p.w.Close()
}

// errClosed is the error of calls after Close.
var errClosed = &cherrygrove.Error{Kind: cherrygrove.Closed, Message: "the world is closed"}

// dimension returns the world's number of a dimension.
func (p *Provider) dimension(dim world.Dimension) (uint32, error) {
	p.dimMu.Lock()
	defer p.dimMu.Unlock()
	if id, ok := p.dims[dim]; ok {
		return id, nil
	}
	name, err := dimensionName(dim)
	if err != nil {
		return 0, err
	}
	id, err := p.register(cherrygrove.Dimensions, name)
	if err != nil {
		return 0, fmt.Errorf("dimension %s: %w", name, err)
	}
	p.dims[dim] = id
	return id, nil
}

// dimensionName returns the name under which a dimension is stored.
func dimensionName(dim world.Dimension) (string, error) {
	switch dim {
	case world.Overworld:
		return "minecraft:overworld", nil
	case world.Nether:
		return "minecraft:the_nether", nil
	case world.End:
		return "minecraft:the_end", nil
	}
	for _, d := range world.CustomDimensions() {
		if d.Dimension == dim {
			return namespaced(d.Name), nil
		}
	}
	return "", fmt.Errorf("the dimension %v is not registered", dim)
}
