package cherrygrove

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// open opens a fresh world.
func open(t *testing.T) (*World, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "world")
	w, err := Open(dir, &Options{Mode: Create})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w, dir
}

// known is a host of three blocks, two biomes and one kind of entity.
func known() *Known {
	return &Known{
		Blocks:   []BlockName{{"game:air", 0}, {"game:stone", Opaque}, {"game:chest[facing=north]", OwnsBlockEntity}},
		Biomes:   []BiomeName{{"game:plain", 0}, {"game:hill", 9}},
		Entities: []string{"game:pig"},
		Layers:   1, Order: XZY, WordBits: 32, BiomeSideLog2: 4,
	}
}

// bind binds the numbers of known.
func bind(t *testing.T, w *World) *Binding {
	t.Helper()
	b, err := w.Bind(known())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// dimension returns the number of a dimension of the tests.
func dimension(t *testing.T, w *World) uint32 {
	t.Helper()
	ids, err := w.Register(Dimensions, []Name{{Name: "game:earth"}})
	if err != nil {
		t.Fatal(err)
	}
	return uint32(ids[0])
}

// column returns a column of two sections: one of stone with a chest at its
// lowest corner, one of air.
func column(dim uint32, x int64) *Column {
	words := bytes.Repeat([]byte{0}, 512)
	words[0] = 1 // the first cell: palette[1]
	return &Column{
		ColumnAt: ColumnAt{Dimension: dim, X: x, Z: -3, MinY: -4, MaxY: 19},
		Sections: []Section{
			{Y: -4, Layers: []Cells{{Words: words, Palette: []uint32{1, 2}, Bits: 1, WordBits: 32, Order: XZY, SideLog2: 4}},
				Biomes: Cells{Palette: []uint32{9}, WordBits: 32, Order: XZY, SideLog2: 4}},
			{Y: 0},
		},
		BlockEntities: []BlockEntity{{Pos{x << 4, -64, -48}, []byte("chest")}},
		Entities: []Entity{{ID: ID{1, byte(x)}, Kind: 0, Dimension: dim, Block: Pos{x<<4 + 1, -60, -47},
			Fraction: [3]float32{0.5, 0.25, 0}, NBT: []byte("pig")}},
		Tick:      100,
		Scheduled: []Scheduled{{At: Pos{x<<4 + 2, -64, -46}, Due: 110, Block: 1, Priority: -1}},
	}
}

// check demands the column of column.
func check(t *testing.T, w *World, b *Binding, dim uint32, x int64) {
	t.Helper()
	want := column(dim, x)
	err := w.ViewColumn(b, want.ColumnAt, func(c *Column) error {
		if len(c.Sections) != 2 || c.Sections[0].Y != -4 || c.Sections[1].Y != 0 {
			return fmt.Errorf("sections: %+v", c.Sections)
		}
		cells := c.Sections[0].Layers[0]
		if cells.Bits == 0 || cells.Palette[cells.Words[0]&(1<<cells.Bits-1)] != 2 {
			return fmt.Errorf("cells: %+v", cells)
		}
		if biomes := c.Sections[0].Biomes; biomes.Bits != 0 || biomes.Palette[0] != 9 {
			return fmt.Errorf("biomes: %+v", biomes)
		}
		if len(c.BlockEntities) != 1 || c.BlockEntities[0].At != want.BlockEntities[0].At || string(c.BlockEntities[0].NBT) != "chest" {
			return fmt.Errorf("block entities: %+v", c.BlockEntities)
		}
		if len(c.Entities) != 1 || c.Entities[0].ID != want.Entities[0].ID || c.Entities[0].Block != want.Entities[0].Block ||
			c.Entities[0].Fraction != want.Entities[0].Fraction || string(c.Entities[0].NBT) != "pig" {
			return fmt.Errorf("entities: %+v", c.Entities)
		}
		if len(c.Scheduled) != 1 || c.Scheduled[0].Due-c.Tick != 10 || c.Scheduled[0].Priority != -1 || c.Scheduled[0].Block != 1 {
			return fmt.Errorf("scheduled: %+v at %d", c.Scheduled, c.Tick)
		}
		return nil
	})
	if err != nil {
		t.Errorf("column %d: %v", x, err)
	}
}

func TestColumns(t *testing.T) {
	w, dir := open(t)
	b, dim := bind(t, w), dimension(t, w)
	at := ColumnAt{Dimension: dim, X: 7, Z: -3, MinY: -4, MaxY: 19}
	if err := w.ViewColumn(b, at, func(*Column) error { return nil }); !errors.Is(err, ErrAbsent) {
		t.Errorf("an absent column: %v", err)
	}
	for x := range int64(5) {
		if unchanged, err := w.SubmitColumn(b, column(dim, x), 0); err != nil || unchanged {
			t.Fatalf("submit: %v %v", unchanged, err)
		}
		check(t, w, b, dim, x)
	}
	if commit, unchanged, err := w.SaveColumn(b, column(dim, 5), 0); err != nil || unchanged || commit == 0 {
		t.Fatalf("save: %v %v %v", commit, unchanged, err)
	}
	if _, unchanged, err := w.SaveColumn(b, column(dim, 5), 0); err != nil || !unchanged {
		t.Errorf("a second save is not unchanged: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	b = bind(t, w)
	var xs []int64
	for at, err := range w.Columns(dim) {
		if err != nil {
			t.Fatal(err)
		}
		xs = append(xs, at.X)
		if at.Z != -3 || at.MinY != -4 || at.MaxY != 0 {
			t.Errorf("column: %+v", at)
		}
	}
	if fmt.Sprint(xs) != "[0 1 2 3 4 5]" {
		t.Errorf("columns: %v", xs)
	}
	for range w.Columns(dim) {
		break
	}
	for x := range int64(6) {
		check(t, w, b, dim, x)
	}
}

func TestErrors(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "none"), nil)
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, e.Kind) || e.Message == "" || errors.Is(err, Damaged) {
		t.Errorf("open of nothing: %#v", err)
	}
	w, dir := open(t)
	if _, err := Open(dir, nil); !errors.Is(err, Busy) {
		t.Errorf("the same world twice: %v", err)
	}
	b, dim := bind(t, w), dimension(t, w)
	wrong := column(dim, 1)
	wrong.Sections[0].Layers[0].Palette[1] = 3
	if _, err := w.SubmitColumn(b, wrong, 0); !errors.Is(err, Invalid) {
		t.Errorf("a number that the binding does not have: %v", err)
	}
	short := column(dim, 1)
	short.Sections[0].Layers[0].Words = short.Sections[0].Layers[0].Words[:500]
	if _, err := w.SubmitColumn(b, short, 0); !errors.Is(err, Invalid) {
		t.Errorf("words that are too short: %v", err)
	}
	twice := known()
	twice.Blocks[1].Name = "game:air"
	if _, err := w.Bind(twice); !errors.Is(err, Invalid) {
		t.Errorf("two blocks of one name: %v", err)
	}
	for k := Damaged; k >= Internal; k-- {
		if k.Error() == "" || strings.Contains(k.Error(), " ") {
			t.Errorf("the code of %d is %q", int32(k), k.Error())
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); !errors.Is(err, Closed) {
		t.Errorf("a second close: %v", err)
	}
	if err := w.Flush(); err == nil {
		t.Error("a flush after close succeeds")
	}
	if _, err := w.SubmitColumn(b, column(dim, 1), 0); err == nil {
		t.Error("a column is accepted after close")
	}
}

func TestWorld(t *testing.T) {
	w, dir := open(t)
	dim := dimension(t, w)
	if _, err := w.Info(); err != nil {
		t.Error(err)
	}
	if u, err := w.Usage(); err != nil || u.Free == 0 {
		t.Errorf("usage: %+v %v", u, err)
	}
	if m, err := w.Metrics(); err != nil || len(m) == 0 {
		t.Errorf("metrics: %v %v", m, err)
	}
	if _, err := w.Tick(1, []PlayerAt{{dim, Pos{1, 2, 3}}}, time.Millisecond); err != nil {
		t.Error(err)
	}
	if p, err := w.KeepLoaded(dim, Box{Pos{0, 0, 0}, Pos{1, 1, 1}}); err != nil {
		t.Error(err)
	} else {
		p.Close()
	}
	if b, err := w.Verify(true); err != nil || !bytes.Contains(b, []byte(`"problems":[]`)) {
		t.Errorf("verify: %s %v", b, err)
	}
	copied := dir + " copied"
	if err := w.Checkpoint(copied, true); err != nil {
		t.Error(err)
	} else if _, err := os.Stat(copied); err != nil {
		t.Error(err)
	}
	if n, err := w.NameOf(Dimensions, uint64(dim)); err != nil || n != "game:earth" {
		t.Errorf("name: %q %v", n, err)
	}
	if ids, err := w.Find(Dimensions, "game:earth", "game:none"); err != nil || ids[0] != uint64(dim) || ids[1] != NoID {
		t.Errorf("find: %v %v", ids, err)
	}
}

// TestAtOnce uses one world from many goroutines while it is closed: calls
// succeed or say that it is closed, and nothing crashes.
func TestAtOnce(t *testing.T) {
	w, _ := open(t)
	b, dim := bind(t, w), dimension(t, w)
	var wg sync.WaitGroup
	for g := range int64(8) {
		wg.Go(func() {
			for i := range int64(400) {
				_, err := w.SubmitColumn(b, column(dim, g*1000+i%20), 0)
				if err == nil {
					err = w.ViewColumn(b, column(dim, g*1000+i%20).ColumnAt, func(*Column) error { return nil })
				}
				if err != nil && !errors.Is(err, Closed) && !errors.Is(err, Invalid) {
					t.Errorf("%v", err)
					return
				}
			}
		})
	}
	time.Sleep(30 * time.Millisecond)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}
