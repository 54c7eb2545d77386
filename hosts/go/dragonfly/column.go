package dragonfly

import (
	"errors"
	"fmt"

	"github.com/cherrygrove/hosts/go/cherrygrove"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
	"github.com/df-mc/goleveldb/leveldb"
)

// columnAt returns the place of a column in the store.
func (p *Provider) columnAt(pos world.ChunkPos, dim world.Dimension) (cherrygrove.ColumnAt, error) {
	id, err := p.dimension(dim)
	if err != nil {
		return cherrygrove.ColumnAt{}, err
	}
	r := dim.Range()
	return cherrygrove.ColumnAt{Dimension: id, X: int64(pos[0]), Z: int64(pos[1]),
		MinY: int32(r[0] >> 4), MaxY: int32(r[1] >> 4)}, nil
}

// LoadColumn loads a column. errors.Is(err, leveldb.ErrNotFound) says that it
// was never stored; every other error says that it cannot be read now, and
// dragonfly then shows an empty column that it does not keep.
func (p *Provider) LoadColumn(pos world.ChunkPos, dim world.Dimension) (*chunk.Column, error) {
	col, l, err := p.loadColumn(pos, dim)
	switch {
	case err == nil && l.damaged > 0:
		p.trouble.damaged(pos, dim, fmt.Errorf("%d sections are damaged and hold a placeholder", l.damaged))
		return col, nil
	case err == nil:
		return col, nil
	case errors.Is(err, cherrygrove.ErrAbsent):
		err = leveldb.ErrNotFound
	case errors.Is(err, cherrygrove.Damaged):
		p.trouble.damaged(pos, dim, err)
	}
	return nil, fmt.Errorf("load column %d %d of the %v: %w", pos[0], pos[1], dim, err)
}

// lacks counts what of a stored column the server does not see: what it does
// not know, and sections that are damaged.
type lacks struct{ kept, damaged uint64 }

// loadColumn loads a column. It reports nothing: OnTrouble may call the
// provider.
func (p *Provider) loadColumn(pos world.ChunkPos, dim world.Dimension) (out *chunk.Column, l lacks, err error) {
	if p.closed.Load() {
		return nil, l, errClosed
	}
	at, err := p.columnAt(pos, dim)
	if err != nil {
		return nil, l, err
	}
	if at.Dimension == unknown {
		return nil, l, cherrygrove.ErrAbsent
	}
	err = p.use(func(b *bound) error {
		return p.w.ViewColumn(b.binding, at, func(col *cherrygrove.Column) error {
			ch, err := decodeChunk(col, b.blocks, b.air, dim.Range())
			if err != nil {
				return err
			}
			out, l = &chunk.Column{Chunk: ch, Tick: col.Tick}, lacks{col.Kept, col.DamagedSections}
			return readContents(out, col, b)
		})
	})
	return out, l, err
}

// StoreColumn accepts a column. Loads see it at once, and it is committed
// together with what is stored within Config.Group. If the disk takes
// nothing it is held in memory. The error says that it is not even held, since
// dragonfly drops the column then.
func (p *Provider) StoreColumn(pos world.ChunkPos, dim world.Dimension, col *chunk.Column) error {
	if err := p.storeColumn(pos, dim, col); err != nil {
		return fmt.Errorf("store column %d %d of the %v: %w", pos[0], pos[1], dim, err)
	}
	return nil
}

func (p *Provider) storeColumn(pos world.ChunkPos, dim world.Dimension, col *chunk.Column) error {
	if p.closed.Load() {
		return errClosed
	}
	at, err := p.columnAt(pos, dim)
	if err != nil {
		return err
	}
	e := encoders.Get().(*encoder)
	defer e.release()
	e.col.ColumnAt = at
	for tries := 0; ; tries++ {
		var fresh *unbound
		err = p.use(func(b *bound) error {
			if tries == 0 {
				if err := e.sections(col.Chunk, b.air); err != nil {
					return err
				}
			}
			if fresh = e.fill(col, b); fresh.any() {
				return nil
			}
			_, err := p.w.SubmitColumn(b.binding, &e.col, 0)
			return err
		})
		if err != nil || !fresh.any() || tries == 2 {
			break
		}
		if err = p.bindMore(fresh); err != nil {
			return err
		}
	}
	if err == nil && e.left != nil {
		p.report(fmt.Errorf("column %d %d of the %v: left out: %w", pos[0], pos[1], dim, e.left))
	}
	return err
}

// fill makes the column of the store. It returns what the binding lacks.
func (e *encoder) fill(col *chunk.Column, b *bound) *unbound {
	fresh := &unbound{}
	for i := range e.col.Sections {
		for _, n := range e.col.Sections[i].Biomes.Palette {
			if !b.biomes[n] {
				fresh.biomes = append(fresh.biomes, n)
			}
		}
	}
	e.contents(col, b, fresh)
	return fresh
}

// unbound is what a server has that the binding does not have yet.
type unbound struct {
	kinds  []string
	biomes []uint32
}

func (u *unbound) any() bool { return u != nil && len(u.kinds)+len(u.biomes) > 0 }

// bindMore binds anew with more names.
func (p *Provider) bindMore(u *unbound) error {
	if len(u.biomes) > 0 {
		if err := p.keepBiomes(u.biomes); err != nil {
			return err
		}
	}
	for _, k := range u.kinds {
		if p.everyKind {
			break
		}
		p.report(fmt.Errorf("the server has entities of the kind %s, which is not in Config.Entities of the provider: "+
			"stored ones are not shown after a restart", k))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bindLocked(u.kinds, u.biomes)
}
