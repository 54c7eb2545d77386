package dragonfly

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/cherrygrove/hosts/go/cherrygrove"
	"github.com/cherrygrove/hosts/go/dragonfly/internal/nbt"
	"github.com/df-mc/dragonfly/server/player"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/google/uuid"
)

// players is the player.Provider of a Provider.
type players struct {
	p *Provider

	mu         sync.Mutex
	unreadable map[uuid.UUID]error     // players that are stored and could not be loaded
	kept       map[uuid.UUID]keptItems // items that the server does not know
}

// ErrNoPlayer says that a player was never stored, so dragonfly makes it anew.
var ErrNoPlayer = errors.New("the player is not stored")

// Load loads a player. errors.Is(err, ErrNoPlayer) says that it was never
// stored. dragonfly makes a new player after every error; one that is stored
// and could not be read is not replaced by that: Save refuses it.
func (s *players) Load(id uuid.UUID, find func(world.Dimension) *world.World) (player.Config, *world.World, error) {
	conf, w, err := s.load(id, find)
	if err != nil {
		err = fmt.Errorf("load player %v: %w", id, err)
		if !errors.Is(err, ErrNoPlayer) {
			s.mu.Lock()
			if s.unreadable == nil {
				s.unreadable = map[uuid.UUID]error{}
			}
			s.unreadable[id] = err
			s.mu.Unlock()
			s.p.report(err)
		}
	}
	return conf, w, err
}

func (s *players) load(id uuid.UUID, find func(world.Dimension) *world.World) (conf player.Config, w *world.World, err error) {
	if s.p.closed.Load() {
		return conf, nil, errClosed
	}
	n, _, err := s.p.w.Entity(nil, cherrygrove.ID(id))
	if errors.Is(err, cherrygrove.ErrAbsent) {
		return conf, nil, ErrNoPlayer
	}
	if err != nil {
		return conf, nil, err
	}
	if n.Kind != s.p.playerKind {
		return conf, nil, fmt.Errorf("the entity of this id is no player")
	}
	data, err := nbt.Read(n.NBT)
	if err != nil {
		return conf, nil, err
	}
	conf, kept, err := readPlayer(data)
	if err != nil {
		return player.Config{}, nil, err
	}
	conf.UUID = id
	dim, err := s.p.dimensionOf(n.Dimension)
	if err != nil {
		return player.Config{}, nil, err
	}
	if w = find(dim); w == nil {
		return player.Config{}, nil, fmt.Errorf("the server has no world for the dimension %v", dim)
	}
	s.mu.Lock()
	delete(s.unreadable, id)
	if s.kept == nil {
		s.kept = map[uuid.UUID]keptItems{}
	}
	if delete(s.kept, id); len(kept) > 0 {
		s.kept[id] = kept
	}
	s.mu.Unlock()
	return conf, w, nil
}

// Save stores a player as StoreColumn stores a column.
func (s *players) Save(id uuid.UUID, conf player.Config, w *world.World) error {
	if err := s.save(id, conf, w.Dimension()); err != nil {
		return fmt.Errorf("save player %v: %w", id, err)
	}
	return nil
}

func (s *players) save(id uuid.UUID, conf player.Config, dim world.Dimension) error {
	if s.p.closed.Load() {
		return errClosed
	}
	s.mu.Lock()
	broken, kept := s.unreadable[id], s.kept[id]
	s.mu.Unlock()
	if broken != nil {
		return fmt.Errorf("what is stored could not be read and is not replaced: %w", broken)
	}
	number, err := s.p.dimension(dim)
	if err != nil {
		return err
	}
	data, left := nbt.Append(nil, writePlayer(conf, kept))
	if left != nil {
		s.p.report(fmt.Errorf("player %v: left out: %w", id, left))
	}
	n := cherrygrove.Entity{ID: cherrygrove.ID(id), Kind: s.p.playerKind, Dimension: number, NBT: data}
	at := [3]int64{}
	for i, v := range conf.Position {
		if floor := math.Floor(v); math.Abs(floor) < 1<<53 {
			at[i] = int64(floor)
			if f := float32(v - floor); f < 1 {
				n.Fraction[i] = f
			}
		}
	}
	n.Block = cherrygrove.Pos{X: at[0], Y: at[1], Z: at[2]}
	tx, err := s.p.w.Begin()
	if err != nil {
		return err
	}
	defer tx.Close()
	if err := tx.PutEntity(nil, &n, true); err != nil {
		return err
	}
	return tx.Submit()
}

// Close does nothing: the Provider closes the world.
func (s *players) Close() error { return nil }

// dimensionOf returns the dimension of a number of the world.
func (p *Provider) dimensionOf(number uint32) (world.Dimension, error) {
	p.dimMu.Lock()
	defer p.dimMu.Unlock()
	for dim, n := range p.dims {
		if n == number {
			return dim, nil
		}
	}
	name, err := p.w.NameOf(cherrygrove.Dimensions, uint64(number))
	if err != nil {
		return nil, err
	}
	for _, d := range world.CustomDimensions() {
		if namespaced(d.Name) == name {
			p.dims[d.Dimension] = number
			return d.Dimension, nil
		}
	}
	return nil, fmt.Errorf("the server does not have the dimension %s", name)
}
