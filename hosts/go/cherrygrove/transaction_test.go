package cherrygrove

import (
	"errors"
	"testing"
	"time"
)

func TestTransactions(t *testing.T) {
	w, _ := open(t)
	b, dim := bind(t, w), dimension(t, w)
	kinds, err := w.Register(Entities, []Name{{Name: "game:player"}})
	if err != nil {
		t.Fatal(err)
	}
	player := Entity{ID: ID{9}, Kind: uint32(kinds[0]), Dimension: dim, Block: Pos{1, 2, 3}, NBT: []byte("me")}
	record := Record{ID: ID{7}, Kind: "sign", Dimension: dim, Block: Pos{4, 5, 6}, Timestamp: 77, Bytes: []byte("r")}
	err = w.Update(Safe, func(tx *Transaction) error {
		return errors.Join(tx.Column(b, column(dim, 1), 0), tx.PutEntity(nil, &player, true), tx.Property("game:p", []byte{}),
			tx.PutObject([]byte("k1"), []byte("v")), tx.PutObject([]byte("k2"), nil), tx.PutRecord(&record))
	})
	if err != nil {
		t.Fatal(err)
	}
	check(t, w, b, dim, 1)
	if n, version, err := w.Entity(nil, player.ID); err != nil || version == 0 || string(n.NBT) != "me" || n.Kind != player.Kind {
		t.Errorf("entity: %+v %d %v", n, version, err)
	}
	if p, err := w.Property("game:p"); err != nil || len(p) != 0 {
		t.Errorf("property: %v %v", p, err)
	}
	if _, err := w.Property("game:q"); !errors.Is(err, ErrAbsent) {
		t.Errorf("an absent property: %v", err)
	}
	if o, _, err := w.Object([]byte("k1")); err != nil || string(o) != "v" {
		t.Errorf("object: %q %v", o, err)
	}
	if r, err := w.Record(record.ID); err != nil || r.Kind != "sign" || r.Timestamp != 77 || string(r.Bytes) != "r" || r.Block != record.Block {
		t.Errorf("record: %+v %v", r, err)
	}
	keys := ""
	for v, err := range w.Objects([]byte("k")) {
		if err != nil {
			t.Fatal(err)
		}
		keys += string(v.Key) + " "
	}
	if keys != "k1 k2 " {
		t.Errorf("objects: %s", keys)
	}
	n := 0
	for r, err := range w.Records(dim, Box{Pos{0, 0, 0}, Pos{10, 10, 10}}) {
		if err != nil || r.ID != record.ID {
			t.Errorf("records: %+v %v", r, err)
		}
		n++
	}
	for e, err := range w.Detached(nil) {
		if err != nil || e.ID != player.ID {
			t.Errorf("detached: %+v %v", e, err)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d records and detached entities", n)
	}
	wanted := errors.New("no")
	err = w.Update(Default, func(tx *Transaction) error {
		if err := tx.DeleteEntity(player.ID); err != nil {
			return err
		}
		return wanted
	})
	if _, _, gone := w.Entity(nil, player.ID); err != wanted || gone != nil {
		t.Errorf("a transaction that was given up: %v %v", err, gone)
	}
	tx, err := w.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Close()
	if err := errors.Join(tx.ExpectEntity(player.ID, 999), tx.DeleteEntity(player.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Commit(Default); !errors.Is(err, Conflict) {
		t.Errorf("a version that differs: %v", err)
	}
}

func TestSettings(t *testing.T) {
	w, _ := open(t)
	if s, err := w.Settings(); err != nil || s.Time != nil || s.Spawn != nil {
		t.Fatalf("fresh settings: %+v %v", s, err)
	}
	name, now, yes, tick := "Nämé", time.UnixMilli(1234567890123), true, int64(-5)
	set := &Settings{Name: &name, Created: &now, TimeCycle: &yes, Time: &tick, Spawn: &Spawn{"game:earth", Pos{1, -2, 3}}}
	if err := w.Update(Default, func(tx *Transaction) error { return tx.Settings(set) }); err != nil {
		t.Fatal(err)
	}
	s, err := w.Settings()
	if err != nil {
		t.Fatal(err)
	}
	if *s.Name != name || !s.Created.Equal(now) || !*s.TimeCycle || *s.Time != tick || *s.Spawn != *set.Spawn || s.Raining != nil {
		t.Errorf("settings: %+v", s)
	}
}

func TestChunks(t *testing.T) {
	w, _ := open(t)
	dim := dimension(t, w)
	blocks, err := w.Register(Blocks, []Name{{Name: "game:air"}, {Name: "game:stone", Flags: Opaque}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := w.NewChunk(blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetBlock(CellAt{1, 2, 3, 0}, blocks[1]); err != nil {
		t.Fatal(err)
	}
	at := Pos{-1, 2, 1 << 40}
	if err := w.Update(Default, func(tx *Transaction) error { return tx.Chunk(dim, at, c) }); err != nil {
		t.Fatal(err)
	}
	got, version, err := w.Chunk(dim, at)
	if err != nil || version == 0 {
		t.Fatal(version, err)
	}
	defer got.Close()
	var ids [4096]uint64
	if err := got.Cells(YZX, &ids); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		want := blocks[0]
		if i == 2<<8|3<<4|1 {
			want = blocks[1]
		}
		if id != want {
			t.Fatalf("cell %d is %d", i, id)
		}
	}
	if _, _, err := w.Chunk(dim, Pos{}); !errors.Is(err, ErrAbsent) {
		t.Errorf("an absent chunk: %v", err)
	}
}
