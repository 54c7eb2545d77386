package dragonfly

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cherrygrove/hosts/go/cherrygrove"
	"github.com/cherrygrove/hosts/go/dragonfly/internal/nbt"
	"github.com/cherrygrove/hosts/go/dragonfly/providertest"
	"github.com/df-mc/dragonfly/server/item"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
	"github.com/google/uuid"
)

// troubles collects what is reported.
type troubles struct {
	mu   sync.Mutex
	errs []error
}

func (t *troubles) add(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.errs = append(t.errs, err)
}

func (t *troubles) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprint(errors.Join(t.errs...))
}

// openTest opens a provider that reports to the troubles.
func openTest(t *testing.T, dir string) (*Provider, *troubles) {
	t.Helper()
	tr := &troubles{}
	p, err := Open(dir, Config{Log: quiet, OnTrouble: tr.add})
	if err != nil {
		t.Fatal(err)
	}
	world.DefaultBlockRegistry.Finalize()
	p.SetBlockRegistry(world.DefaultBlockRegistry)
	t.Cleanup(func() { _ = p.Close() })
	return p, tr
}

func plain() *chunk.Column { return providertest.MixedColumn(world.Overworld, 1) }

// TestKindThatIsNotRegistered demands that an entity of a kind that the
// provider was not told of is stored and shown, and that this is reported.
func TestKindThatIsNotRegistered(t *testing.T) {
	p, tr := openTest(t, t.TempDir())
	col, pos := plain(), world.ChunkPos{}
	for i, kind := range []string{"plugin:cow", "no namespace", "odd:[=,@]\n", ""} {
		col.Entities = append(col.Entities, chunk.Entity{ID: int64(i), Data: map[string]any{"identifier": kind, "Pos": []float32{1, 2, 3}}})
	}
	delete(col.Entities[3].Data, "identifier")
	for range 2 {
		if err := p.StoreColumn(pos, world.Overworld, col); err != nil {
			t.Fatal(err)
		}
		got, err := p.LoadColumn(pos, world.Overworld)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range providertest.Diff(got, col) {
			t.Error(d)
		}
	}
	if n := strings.Count(tr.text(), "Config.Entities"); n != 3 {
		t.Errorf("reported %d times: %s", n, tr.text())
	}
}

// TestPlayersAreNotEntities demands that a player in a column is not stored
// with it, where it would stay for ever.
func TestPlayersAreNotEntities(t *testing.T) {
	p, _ := openTest(t, t.TempDir())
	col := plain()
	col.Entities = []chunk.Entity{{ID: 1, Data: map[string]any{"identifier": playerName, "Pos": []float32{1, 2, 3}}}}
	if err := p.StoreColumn(world.ChunkPos{}, world.Overworld, col); err != nil {
		t.Fatal(err)
	}
	if got, err := p.LoadColumn(world.ChunkPos{}, world.Overworld); err != nil || len(got.Entities) != 0 {
		t.Errorf("%v %v", got, err)
	}
}

// TestBiomesThatAreNotRegistered demands that numbers of biomes that no
// registry knows come back, also after a restart.
func TestBiomesThatAreNotRegistered(t *testing.T) {
	dir := t.TempDir()
	p, _ := openTest(t, dir)
	col := plain()
	for i, n := range []uint32{255, 256, 30000, 1<<31 + 5} {
		col.Chunk.SetBiome(uint8(i), 100, 3, n)
	}
	if err := p.StoreColumn(world.ChunkPos{}, world.Overworld, col); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p, _ = openTest(t, dir)
	got, err := p.LoadColumn(world.ChunkPos{}, world.Overworld)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range providertest.Diff(got, col) {
		t.Error(d)
	}
}

// TestLeftOut demands a report for what has no place in the store.
func TestLeftOut(t *testing.T) {
	p, tr := openTest(t, t.TempDir())
	col := plain()
	col.BlockEntities = []chunk.BlockEntity{
		{Data: map[string]any{"id": "Chest", "bad": func() {}}}, {Data: map[string]any{"id": "Again"}},
	}
	col.BlockEntities[0].Pos = [3]int{1, 70, 1}
	col.BlockEntities[1].Pos = [3]int{900, 70, 1}
	col.BlockEntities = append(col.BlockEntities, col.BlockEntities[0])
	for range 2 {
		col.Entities = append(col.Entities, chunk.Entity{ID: 5, Data: map[string]any{"identifier": "minecraft:item"}})
	}
	col.Chunk.SetBlock(1, 70, 1, 2, 7) // a third layer
	if err := p.StoreColumn(world.ChunkPos{}, world.Overworld, col); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/bad:", "not in the column", "layer", "have one already", "number of another"} {
		if !strings.Contains(tr.text(), want) {
			t.Errorf("%q is not reported: %s", want, tr.text())
		}
	}
	got, err := p.LoadColumn(world.ChunkPos{}, world.Overworld)
	if err != nil || len(got.BlockEntities) != 1 || len(got.Entities) != 1 || got.BlockEntities[0].Data["id"] != "Chest" {
		t.Errorf("%+v %v", got, err)
	}
}

// TestPlayerThatCannotBeRead demands that a new player, which dragonfly makes
// after an error, does not replace the one that is stored.
func TestPlayerThatCannotBeRead(t *testing.T) {
	p, tr := openTest(t, t.TempDir())
	w := newWorlds()
	defer w.close()
	id := uuid.New()
	bad, _ := nbt.Append(nil, map[string]any{"Version": int32(1)})
	for _, data := range [][]byte{bad, []byte("rubbish"), {}} {
		err := p.w.Update(cherrygrove.Default, func(tx *cherrygrove.Transaction) error {
			dim, _ := p.dimension(world.Overworld)
			return tx.PutEntity(nil, &cherrygrove.Entity{ID: cherrygrove.ID(id), Kind: p.playerKind, Dimension: dim, NBT: data}, true)
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.Players().Load(id, w.find); err == nil || errors.Is(err, ErrNoPlayer) {
			t.Errorf("load: %v", err)
		}
		if err := p.Players().Save(id, providertest.SamplePlayer(id), w[world.Overworld]); err == nil {
			t.Error("the player was replaced")
		}
		n, _, err := p.w.Entity(nil, cherrygrove.ID(id))
		if err != nil || string(n.NBT) != string(data) {
			t.Errorf("what was stored is %q, %v", n.NBT, err)
		}
	}
	if !strings.Contains(tr.text(), id.String()) {
		t.Errorf("not reported: %s", tr.text())
	}
	other := uuid.New()
	if _, _, err := p.Players().Load(other, w.find); !errors.Is(err, ErrNoPlayer) {
		t.Errorf("a player that was never there: %v", err)
	}
	if err := p.Players().Save(other, providertest.SamplePlayer(other), w[world.Overworld]); err != nil {
		t.Error(err)
	}
}

// TestItemsThatAreNotKnown demands that an item of a plugin that is not loaded
// stays in its slot.
func TestItemsThatAreNotKnown(t *testing.T) {
	id := uuid.New()
	m := writePlayer(providertest.SamplePlayer(id), nil)
	strange := map[string]any{"Name": "plugin:gem", "Count": uint8(3), "Damage": int16(0)}
	m[invMain].(map[string]any)["7"] = strange
	conf, kept, err := readPlayer(roundTrip(t, m))
	if err != nil {
		t.Fatal(err)
	}
	again := roundTrip(t, writePlayer(conf, kept))
	if got := again[invMain].(map[string]any)["7"]; fmt.Sprint(got) != fmt.Sprint(strange) {
		t.Errorf("slot 7 is %v", got)
	}
	if err := conf.Inventory.SetItem(7, item.NewStack(item.Apple{}, 1)); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(writePlayer(conf, kept)[invMain].(map[string]any)["7"]); !strings.Contains(got, "apple") {
		t.Errorf("the item that the player put there is %v", got)
	}
}

func roundTrip(t *testing.T, m map[string]any) map[string]any {
	t.Helper()
	b, err := nbt.Append(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = nbt.Read(b); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestEntityThatWasMoved demands that the store's position counts where another
// program has moved an entity, and the NBT's otherwise, digit by digit.
func TestEntityThatWasMoved(t *testing.T) {
	c := &cherrygrove.ColumnAt{X: -2, Z: 3, MinY: -4, MaxY: 19}
	exact := map[string]any{"Pos": []any{float32(-20.3), float32(70.123456), float32(50.5)}}
	at, _ := position(exact)
	n := &cherrygrove.Entity{}
	n.Block, n.Fraction = nearest(at, c)
	moved(exact, n, c)
	if exact["Pos"].([]any)[1] != float32(70.123456) {
		t.Errorf("the position was changed: %v", exact)
	}
	n.Block.Y = 80
	moved(exact, n, c)
	if y := exact["Pos"].([]any)[1].(float32); y < 80 || y > 81 {
		t.Errorf("the position was not changed: %v", exact)
	}
}

// TestMetrics demands that the metrics that are watched are there.
func TestMetrics(t *testing.T) {
	p, _ := openTest(t, t.TempDir())
	m, err := p.w.Metrics()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{heldMetric, refusedMetric} {
		if _, ok := m[name]; !ok {
			t.Errorf("there is no metric %s", name)
		}
	}
}

var pairs = flag.Int("pairs", 5000, "loads and stores of the test of memory")

// TestMemory demands that loads and stores take no more memory with time. Groups
// are short and the cache is small, because both take memory until they are full.
func TestMemory(t *testing.T) {
	p, err := Open(t.TempDir(), Config{Log: quiet, Group: 100 * time.Millisecond, CacheBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	world.DefaultBlockRegistry.Finalize()
	p.SetBlockRegistry(world.DefaultBlockRegistry)
	cols := someColumns()
	var half, last int64
	for i := range *pairs {
		col := cols[i%len(cols)]
		col.Chunk.SetBlock(uint8(i&15), 0, uint8(i>>4&15), 0, uint32(100+i%500))
		pos := world.ChunkPos{int32(i % 100), 0}
		if err := p.StoreColumn(pos, world.Overworld, col); err != nil {
			t.Fatal(err)
		}
		if _, err := p.LoadColumn(pos, world.Overworld); err != nil {
			t.Fatal(err)
		}
		if i%max(*pairs/10, 1) == 0 {
			t.Logf("after %d pairs: %d MiB", i, resident()>>20)
		}
		switch rss := resident(); {
		case i < *pairs/2:
			half = max(half, rss)
		case i >= *pairs-*pairs/10:
			last = max(last, rss)
		}
	}
	t.Logf("%d pairs: %d MiB at most in the first half, %d MiB in the last tenth", *pairs, half>>20, last>>20)
	if limit := half + half/50 + 32<<20; last > limit {
		t.Errorf("%d MiB, then %d MiB", half>>20, last>>20)
	}
}

// resident returns the memory of this process that is resident.
func resident() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var total, pages int64
	_, _ = fmt.Sscan(string(b), &total, &pages)
	return pages * int64(os.Getpagesize())
}
