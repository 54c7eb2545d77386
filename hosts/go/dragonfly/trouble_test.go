package dragonfly

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cherrygrove/hosts/go/cherrygrove"
	"github.com/cherrygrove/hosts/go/dragonfly/internal/smalldisk"
	"github.com/cherrygrove/hosts/go/dragonfly/providertest"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
	"github.com/df-mc/goleveldb/leveldb"
)

// diskEnv makes this program the one that has a small disk.
const diskEnv = "DRAGONFLY_SMALL_DISK"

// TestFullDisk demands that a full disk is reported once, that what it does not
// take is held up to Config.HeldBytes and then refused, and that all that was
// accepted is there when the disk has room again. At Safe nothing is held.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(diskEnv); dir != "" {
		fullDisk(t, dir)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestFullDisk$", "-test.v")
	cmd.Env = append(os.Environ(), diskEnv+"="+t.TempDir())
	cmd.SysProcAttr = smalldisk.Attr()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &exit):
		t.Skipf("no mount namespace: %v", err)
	case err != nil:
		t.Errorf("%v: %s", err, out)
	case strings.Contains(string(out), smalldisk.ErrNone.Error()):
		t.Skip(smalldisk.ErrNone)
	}
}

// fullDisk is the test in the process that has a small disk.
func fullDisk(t *testing.T, dir string) {
	if err := smalldisk.Mount(dir); err != nil {
		t.Skip(err)
	}
	home, log, tr := filepath.Join(dir, "world"), &buffer{}, &troubles{}
	open := func() *Provider {
		p, err := Open(home, Config{Log: slog.New(slog.NewTextHandler(log, nil)), OnTrouble: tr.add, HeldBytes: 4 << 20})
		if err != nil {
			t.Fatal(err)
		}
		p.SetBlockRegistry(world.DefaultBlockRegistry)
		return p
	}
	world.DefaultBlockRegistry.Finalize()
	p := open()
	cols := make([]*chunk.Column, 16)
	for i := range cols {
		cols[i] = providertest.MixedColumn(world.Overworld, uint64(i))
	}
	pos := func(i int) world.ChunkPos { return world.ChunkPos{int32(i), 0} }
	check := func(n int, when string) {
		t.Helper()
		for i := range n {
			got, err := p.LoadColumn(pos(i), world.Overworld)
			if err != nil {
				t.Fatalf("column %d of %d %s: %v", i, n, when, err)
			}
			if d := providertest.Diff(got, cols[i%len(cols)]); len(d) > 0 {
				t.Fatalf("column %d of %d %s: %v", i, n, when, d)
			}
		}
	}
	p.SaveSettings(p.Settings())
	if tr.text() != "<nil>" {
		t.Fatalf("reported with room: %s", tr.text())
	}
	safe, err := Open(filepath.Join(dir, "safe"), Config{Log: quiet, Durability: cherrygrove.Safe})
	if err != nil {
		t.Fatal(err)
	}
	defer safe.Close()
	safe.SetBlockRegistry(world.DefaultBlockRegistry)
	if err := safe.StoreColumn(pos(0), world.Overworld, cols[0]); err != nil {
		t.Fatal(err)
	}
	ballast, err := smalldisk.Fill(dir)
	if err != nil {
		t.Fatal(err)
	}
	accepted := 0
	for err = nil; err == nil; accepted++ {
		if accepted == 10_000 {
			t.Fatal("more is held than Config.HeldBytes")
		}
		err = p.StoreColumn(pos(accepted), world.Overworld, cols[accepted%len(cols)])
	}
	accepted--
	t.Logf("%d columns are accepted, and the next one: %v", accepted, err)
	if accepted < 32 {
		t.Errorf("only %d columns are accepted", accepted)
	}
	if _, err := p.LoadColumn(pos(accepted), world.Overworld); !errors.Is(err, leveldb.ErrNotFound) {
		t.Errorf("the column that was refused: %v", err)
	}
	err = nil
	for i := 0; i < 400 && err == nil; i++ { // the log has some room that was allocated before
		err = safe.StoreColumn(pos(i), world.Overworld, cols[i%len(cols)])
	}
	if !errors.Is(err, cherrygrove.LowDisk) || metrics(t, safe)[heldMetric] != 0 {
		t.Errorf("stores at Safe: %v, and %d are held", err, metrics(t, safe)[heldMetric])
	}
	eventually(t, "held columns are reported", func() bool { return strings.Contains(tr.text(), "held in memory") })
	p.SaveSettings(p.Settings())
	if !strings.Contains(tr.text(), "save settings") {
		t.Errorf("settings that could not be saved are not reported: %s", tr.text())
	}
	check(accepted, "while the disk is full")
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end is logged", func() bool { return strings.Contains(log.text(), "nothing is held any more") })
	if n := strings.Count(tr.text(), "held in memory"); n != 1 {
		t.Errorf("held columns are reported %d times: %s", n, tr.text())
	}
	if err := p.StoreColumn(pos(accepted), world.Overworld, cols[accepted%len(cols)]); err != nil {
		t.Errorf("a store with room: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p = open()
	defer p.Close()
	check(accepted+1, "after a restart")
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !f(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// buffer is a text that one goroutine writes and another one reads.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
