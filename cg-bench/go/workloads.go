package main

import (
	"fmt"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"time"

	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
)

// radius is that of an area of 11×11 columns; repeats are the most of what opens the store each time.
const (
	radius  = 5
	repeats = 40
	burst   = 32
)

var workloads = map[string]func(*task) (*figures, error){
	"new-terrain":    func(t *task) (*figures, error) { return t.newColumns(false) },
	"new-empty":      func(t *task) (*figures, error) { return t.newColumns(true) },
	"changed":        func(t *task) (*figures, error) { return t.changed(true) },
	"submit":         func(t *task) (*figures, error) { return t.changed(false) },
	"accept":         func(t *task) (*figures, error) { return t.changed(false) },
	"equal-terrain":  func(t *task) (*figures, error) { return t.equalAgain(false) },
	"equal-empty":    func(t *task) (*figures, error) { return t.equalAgain(true) },
	"column-terrain": func(t *task) (*figures, error) { return t.reopened(false) },
	"column-empty":   func(t *task) (*figures, error) { return t.reopened(true) },
	"area-terrain":   func(t *task) (*figures, error) { return t.area(false) },
	"area-empty":     func(t *task) (*figures, error) { return t.area(true) },
	"absent":         (*task).absentColumns,
	"absent-again":   func(t *task) (*figures, error) { return t.absentAgain(askForAbsent) },
	"absent-many":    func(t *task) (*figures, error) { return t.absentAgain(askForAbsentArea) },
	"block-process":  func(t *task) (*figures, error) { return t.blocks(mode{process: true}) },
	"block-synced":   func(t *task) (*figures, error) { return t.blocks(mode{synced: true}) },
	"cached":         (*task).cached,
	"open":           (*task).open,
	"disk":           (*task).disk,
}

func (t *task) places() []world.ChunkPos {
	side := int(math.Ceil(math.Sqrt(float64(t.count))))
	all := make([]world.ChunkPos, t.count)
	for index := range all {
		all[index] = world.ChunkPos{int32(index / side), int32(index % side)}
	}
	return all
}

func (t *task) shuffled() []world.ChunkPos {
	all := t.places()
	rand.New(rand.NewSource(int64(t.seed))).Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
	return all
}

func (t *task) middle() world.ChunkPos {
	half := int32(math.Sqrt(float64(t.count))) / 2
	return world.ChunkPos{half, half}
}

func (t *task) own() string { return filepath.Join(t.scratch, "store") }

func (t *task) dir(empty bool) string {
	if empty {
		return filepath.Join(t.prepared, "empty")
	}
	return filepath.Join(t.prepared, "terrain")
}

func (t *task) column(p world.ChunkPos, empty bool) *chunk.Column {
	if empty {
		return t.columns.empty
	}
	return t.columns.at(p)
}

// changedColumn has another block in each section.
func (t *task) changedColumn(p world.ChunkPos) *chunk.Column {
	column := cloned(t.columns.at(p))
	for section := range sections {
		column.Chunk.SetBlock(3, int16(bottom+section*16+3), 3, 0, t.other(column, 3, int16(bottom+section*16+3), 3))
	}
	return column
}

// other is a state that a cell does not have.
func (t *task) other(c *chunk.Column, x uint8, y int16, z uint8) uint32 {
	air := t.columns.empty.Chunk.Block(0, bottom, 0, 0)
	if c.Chunk.Block(x, y, z, 0) != air {
		return air
	}
	return air ^ 1
}

// check compares what a reopened store has.
func (t *task) check(dir string, expected func(world.ChunkPos) *chunk.Column) (uint64, error) {
	s, err := the.open(dir, mode{})
	if err != nil {
		return 0, err
	}
	count := uint64(0)
	for _, p := range t.places() {
		is, err := s.LoadColumn(p, world.Overworld)
		if err != nil {
			return count, fmt.Errorf("the column at %d, %d is lost: %w", p[0], p[1], err)
		}
		if err := equal(p, is, expected(p)); err != nil {
			return count, err
		}
		count++
	}
	return count, s.Close()
}

// prepare makes the stores that are read and copied.
func (t *task) prepare() error {
	for _, empty := range []bool{false, true} {
		s, err := the.open(t.dir(empty), mode{})
		if err != nil {
			return err
		}
		for _, p := range t.places() {
			if err := s.StoreColumn(p, world.Overworld, t.column(p, empty)); err != nil {
				return err
			}
		}
		if err := s.Close(); err != nil {
			return err
		}
		expected := func(p world.ChunkPos) *chunk.Column { return t.column(p, empty) }
		if _, err := t.check(t.dir(empty), expected); err != nil {
			return err
		}
	}
	return nil
}

func (t *task) newColumns(empty bool) (*figures, error) {
	m := begin()
	var s store
	if err := m.apart(func() (err error) { s, err = the.open(t.own(), mode{}); return }); err != nil {
		return nil, err
	}
	for _, p := range t.places() {
		if err := m.call(func() error { return s.StoreColumn(p, world.Overworld, t.column(p, empty)) }); err != nil {
			return nil, err
		}
	}
	if err := m.work(0, s.Close); err != nil {
		return nil, err
	}
	return t.end(m, func(p world.ChunkPos) *chunk.Column { return t.column(p, empty) })
}

// end gives the figures of a workload that wrote, and compares.
func (t *task) end(m *meter, expected func(world.ChunkPos) *chunk.Column) (*figures, error) {
	f, err := m.end(t.own())
	if err != nil {
		return nil, err
	}
	f.Saved = t.columns.saved / uint64(len(t.columns.terrain)) * f.Units
	f.Compared, err = t.check(t.own(), expected)
	return f, err
}

// copied opens a copy of a prepared store and loads all of it.
func (t *task) copied(empty bool, m mode) (store, error) {
	if err := os.CopyFS(t.own(), os.DirFS(t.dir(empty))); err != nil {
		return nil, err
	}
	s, err := the.open(t.own(), m)
	if err != nil {
		return nil, err
	}
	for _, p := range t.places() {
		if _, err := s.LoadColumn(p, world.Overworld); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (t *task) changed(untilSynced bool) (*figures, error) {
	now := map[world.ChunkPos]*chunk.Column{}
	for _, p := range t.places() {
		now[p] = t.changedColumn(p)
	}
	m := begin()
	var s store
	err := m.apart(func() (err error) { s, err = t.copied(false, mode{}); return })
	if err != nil {
		return nil, err
	}
	for number, p := range t.places() {
		if err := m.call(func() error { return s.StoreColumn(p, world.Overworld, now[p]) }); err != nil {
			return nil, err
		}
		if !untilSynced && number%burst == burst-1 {
			// As long as other stores take to write a burst.
			time.Sleep(10 * time.Millisecond)
		}
	}
	if untilSynced {
		err = m.work(0, s.Close)
	} else {
		err = s.Close()
	}
	if err != nil {
		return nil, err
	}
	return t.end(m, func(p world.ChunkPos) *chunk.Column { return now[p] })
}

func (t *task) equalAgain(empty bool) (*figures, error) {
	m := begin()
	var s store
	err := m.apart(func() (err error) { s, err = t.copied(empty, mode{synced: true}); return })
	if err != nil {
		return nil, err
	}
	for _, p := range t.places() {
		column := cloned(t.column(p, empty))
		if err := m.call(func() error { return s.StoreColumn(p, world.Overworld, column) }); err != nil {
			return nil, err
		}
		if m.spent > 2*time.Second {
			break
		}
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return t.end(m, func(p world.ChunkPos) *chunk.Column { return t.column(p, empty) })
}

func (t *task) blocks(how mode) (*figures, error) {
	now := map[world.ChunkPos]*chunk.Column{}
	m := begin()
	var s store
	err := m.apart(func() (err error) { s, err = t.copied(false, how); return })
	if err != nil {
		return nil, err
	}
	places := t.shuffled()
	for turn := 0; turn < 4*t.count && !m.isEnough(t.enough); turn++ {
		p := places[turn%len(places)]
		if now[p] == nil {
			now[p] = cloned(t.columns.at(p))
		}
		x, y, z := uint8(turn&15), int16(bottom+turn*7%sections*16+turn&15), uint8(turn>>4&15)
		state := t.other(now[p], x, y, z)
		at := cube.Pos{int(p[0])<<4 | int(x), int(y), int(p[1])<<4 | int(z)}
		if err := m.call(func() error { return s.setBlock(p, at, state) }); err != nil {
			return nil, err
		}
		now[p].Chunk.SetBlock(x, y, z, 0, state)
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return t.end(m, func(p world.ChunkPos) *chunk.Column {
		if now[p] != nil {
			return now[p]
		}
		return t.columns.at(p)
	})
}

// reading runs a workload on a prepared store that it opens once.
func (t *task) reading(empty bool, how mode, work func(*meter, store) error) (*figures, error) {
	m := begin()
	var s store
	if err := m.apart(func() (err error) { s, err = the.open(t.dir(empty), how); return }); err != nil {
		return nil, err
	}
	if err := work(m, s); err != nil {
		return nil, err
	}
	f, err := m.end(t.dir(empty))
	if err != nil {
		return nil, err
	}
	return f, s.Close()
}

func (t *task) reopened(empty bool) (*figures, error) {
	places := t.shuffled()
	f, err := t.reading(empty, mode{tiny: true}, func(m *meter, s store) error {
		for first := true; m.spent < t.enough; first = false {
			for _, p := range places {
				var is *chunk.Column
				load := func() (err error) { is, err = s.LoadColumn(p, world.Overworld); return }
				if !first {
					if err := m.call(load); err != nil {
						return err
					}
					continue
				}
				if err := m.apart(load); err != nil {
					return err
				}
				if err := equal(p, is, t.column(p, empty)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err == nil {
		f.Compared = uint64(len(places))
	}
	return f, err
}

// compared adds a comparison of a whole prepared store to the figures of a workload that read.
func (t *task) compared(empty bool, f *figures, err error) (*figures, error) {
	if err == nil {
		f.Compared, err = t.check(t.dir(empty), func(p world.ChunkPos) *chunk.Column { return t.column(p, empty) })
	}
	return f, err
}

// opening repeats what opens a prepared store each time.
func (t *task) opening(empty bool, work func(*meter, store) error) (*figures, error) {
	m := begin()
	for turn := 0; turn < repeats && !m.isEnough(t.enough); turn++ {
		var s store
		if err := m.apart(func() (err error) { s, err = the.open(t.dir(empty), mode{}); return }); err != nil {
			return nil, err
		}
		if err := work(m, s); err != nil {
			return nil, err
		}
		if err := m.apart(s.Close); err != nil {
			return nil, err
		}
	}
	f, err := m.end(t.dir(empty))
	return t.compared(empty, f, err)
}

func (t *task) area(empty bool) (*figures, error) {
	return t.opening(empty, func(m *meter, s store) error {
		return m.call(func() error {
			all, err := s.loadArea(t.middle(), radius)
			if err == nil && len(all) != (2*radius+1)*(2*radius+1) {
				return fmt.Errorf("an area has %d columns", len(all))
			}
			return err
		})
	})
}

func (t *task) absentColumns() (*figures, error) {
	return t.opening(false, func(m *meter, s store) error {
		return m.call(func() error { return askForAbsent(s) })
	})
}

// absentAgain asks for an area that was never stored, after it was asked for twice.
func (t *task) absentAgain(ask func(store) error) (*figures, error) {
	f, err := t.reading(false, mode{}, func(m *meter, s store) error {
		for turn := 0; turn < 2; turn++ {
			if err := m.apart(func() error { return ask(s) }); err != nil {
				return err
			}
		}
		for m.spent < t.enough {
			if err := m.work(1, func() error { return ask(s) }); err != nil {
				return err
			}
		}
		return nil
	})
	return t.compared(false, f, err)
}

func askForAbsentArea(s store) error {
	all, err := s.loadArea(world.ChunkPos{-100, -100}, radius)
	if err == nil && len(all) > 0 {
		return fmt.Errorf("%d columns were never saved", len(all))
	}
	return err
}

func askForAbsent(s store) error {
	for x := int32(-105); x <= -95; x++ {
		for z := int32(-105); z <= -95; z++ {
			if _, err := s.LoadColumn(world.ChunkPos{x, z}, world.Overworld); !absent(err) {
				return fmt.Errorf("the column at %d, %d was never saved: %v", x, z, err)
			}
		}
	}
	return nil
}

func (t *task) cached() (*figures, error) {
	middle := t.middle()
	f, err := t.reading(false, mode{}, func(m *meter, s store) error {
		all := func() error {
			for x := int32(-radius); x <= radius; x++ {
				for z := int32(-radius); z <= radius; z++ {
					if _, err := s.LoadColumn(world.ChunkPos{middle[0] + x, middle[1] + z}, world.Overworld); err != nil {
						return err
					}
				}
			}
			return nil
		}
		if err := m.apart(all); err != nil {
			return err
		}
		for m.spent < t.enough {
			if err := m.work((2*radius+1)*(2*radius+1), all); err != nil {
				return err
			}
		}
		return nil
	})
	return t.compared(false, f, err)
}

func (t *task) open() (*figures, error) {
	m := begin()
	for turn := 0; turn < repeats && !m.isEnough(t.enough); turn++ {
		var s store
		if err := m.call(func() (err error) { s, err = the.open(t.dir(false), mode{}); return }); err != nil {
			return nil, err
		}
		if err := m.apart(s.Close); err != nil {
			return nil, err
		}
	}
	f, err := m.end(t.dir(false))
	return t.compared(false, f, err)
}

func (t *task) disk() (*figures, error) {
	m := begin()
	m.units = uint64(t.count)
	f, err := m.end(t.dir(false))
	if err != nil {
		return nil, err
	}
	f.Value = float64(f.Disk) / float64(t.count)
	f.Saved = t.columns.saved
	return t.compared(false, f, nil)
}
