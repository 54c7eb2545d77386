package dragonfly

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cherrygrove/hosts/go/dragonfly/providertest"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
)

// noisyHeights are the lowest blocks of the sections that noisy fills.
var noisyHeights = []int16{-64, 0, 64}

// noisy returns a column whose sections take much room each, so that a byte of
// the files belongs to one of them.
func noisy(seed uint64) *chunk.Column {
	ch := chunk.New(world.DefaultBlockRegistry, world.Overworld.Range())
	r := rand.New(rand.NewPCG(seed, 1))
	for _, base := range noisyHeights {
		for i := range 4096 {
			ch.SetBlock(uint8(i>>8), base+int16(i&15), uint8(i>>4&15), 0, 1+r.Uint32N(8000))
		}
	}
	ch.Compact()
	return &chunk.Column{Chunk: ch}
}

// blocks returns the blocks of a section of noisy.
func blocks(col *chunk.Column, base int16) (out [4096]uint32) {
	for i := range out {
		out[i] = col.Chunk.Block(uint8(i>>8), base+int16(i&15), uint8(i>>4&15), 0)
	}
	return out
}

// TestPartial demands of Config.OnDamage Partial that the sound sections of a
// column are shown and stored, that the damaged one shows the placeholder, that
// this is reported, and that nothing is written over it.
func TestPartial(t *testing.T) {
	dir, pos, sound := t.TempDir(), world.ChunkPos{}, world.ChunkPos{300, 300}
	p, _ := openTest(t, dir)
	for at, col := range map[world.ChunkPos]*chunk.Column{pos: noisy(1), sound: noisy(2)} {
		if err := p.StoreColumn(at, world.Overworld, col); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	tr := &troubles{}
	conf := Config{Log: quiet, OnDamage: Partial, OnTrouble: tr.add}
	f, err := findFlip(dir, Config{Log: quiet, OnDamage: Partial}, func(p *Provider) bool {
		_, l, err := p.loadColumn(pos, world.Overworld)
		_, other, errOther := p.loadColumn(sound, world.Overworld)
		return err == nil && l.damaged == 1 && errOther == nil && other.damaged == 0
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.do(dir); err != nil {
		t.Fatal(err)
	}
	open := func() *chunk.Column {
		if p, err = Open(dir, conf); err != nil {
			t.Fatal(err)
		}
		p.SetBlockRegistry(world.DefaultBlockRegistry)
		t.Cleanup(func() { _ = p.Close() })
		col, err := p.LoadColumn(pos, world.Overworld)
		if err != nil {
			t.Fatal(err)
		}
		return col
	}
	got, want := open(), noisy(1)
	var damaged, whole []int16
	for _, base := range noisyHeights {
		b := blocks(got, base)
		if b == blocks(want, base) {
			whole = append(whole, base)
			continue
		}
		damaged = append(damaged, base)
		for i, v := range b {
			if v != p.bound.placeholder {
				t.Fatalf("block %d of the damaged section at %d is %d", i, base, v)
			}
		}
	}
	if len(damaged) != 1 || len(whole) != 2 {
		t.Fatalf("damaged: %v, whole: %v", damaged, whole)
	}
	if _, err := p.LoadColumn(pos, world.Overworld); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(tr.text(), "1 sections are damaged"); n != 1 {
		t.Errorf("reported %d times: %s", n, tr.text())
	}
	for _, base := range noisyHeights { // a player builds in all of them
		got.Chunk.SetBlock(3, base+3, 3, 0, 77)
	}
	want.Chunk.SetBlock(3, whole[0]+3, 3, 0, 77)
	want.Chunk.SetBlock(3, whole[1]+3, 3, 0, 77)
	if err := p.StoreColumn(pos, world.Overworld, got); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.do(dir); err != nil { // the damage is undone
		t.Fatal(err)
	}
	for _, d := range providertest.Diff(open(), want) {
		t.Error(d)
	}
}
