// Package killtest kills dragonfly servers while a player builds in them, and
// looks at what is left.
package killtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/df-mc/dragonfly/server/world"
)

var (
	kills = flag.Int("kills", 5, "how often the server is killed")
	under = flag.String("host", "cherrygrove", "the store under the server: cherrygrove or mcdb")
)

// Variables of the environment that make this program a child.
const (
	envProgram = "KILLTEST_PROGRAM"
	envHost    = "KILLTEST_HOST"
	envDir     = "KILLTEST_DIR"
	envAddress = "KILLTEST_ADDRESS"
)

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(envProgram) {
	case "":
		flag.Parse()
		os.Exit(m.Run())
	case "server":
		err = serve(os.Getenv(envHost), os.Getenv(envDir))
	case "client":
		err = play(os.Getenv(envAddress))
	case "look":
		err = look(os.Getenv(envHost), os.Getenv(envDir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child is a program of this test in a process of its own.
type child struct {
	cmd    *exec.Cmd
	lines  chan string
	stderr bytes.Buffer
}

func start(t *testing.T, env ...string) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0]), lines: make(chan string, 1<<16)}
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.Stderr = &c.stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			c.lines <- s.Text()
		}
	}()
	return c
}

// wait waits for a line that begins with a word.
func (c *child) wait(word string, limit time.Duration) (string, bool) {
	end := time.After(limit)
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				return "", false
			}
			if rest, ok := strings.CutPrefix(line, word); ok {
				return strings.TrimSpace(rest), true
			}
		case <-end:
			return "", false
		}
	}
}

// kill ends the process at once.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// seen is what a look finds.
type seen struct {
	Blocks   []string
	Entities map[string]int
	Problems []string
}

// look prints what is stored in the area.
func look(name, dir string) error {
	h, err := openHost(name, dir)
	if err != nil {
		return err
	}
	world.DefaultBlockRegistry.Finalize()
	if s, ok := h.worlds.(interface{ SetBlockRegistry(world.BlockRegistry) }); ok {
		s.SetBlockRegistry(world.DefaultBlockRegistry)
	}
	gold, _ := world.DefaultBlockRegistry.StateToRuntimeID("minecraft:gold_block", nil)
	s := seen{Entities: map[string]int{}}
	for x := int32(-12); x < 12; x++ {
		for z := int32(-12); z < 12; z++ {
			pos := world.ChunkPos{x, z}
			col, err := h.worlds.LoadColumn(pos, world.Overworld)
			if err != nil {
				if !strings.Contains(err.Error(), "not found") {
					s.Problems = append(s.Problems, err.Error())
				}
				continue
			}
			for i := range uint8(16) {
				for j := range uint8(16) {
					if col.Chunk.Block(i, ground, j, 0) == gold {
						s.Blocks = append(s.Blocks, fmt.Sprint(int(x)<<4+int(i), ground, int(z)<<4+int(j)))
					}
				}
			}
			for _, e := range col.Entities {
				if e.Data["identifier"] != "minecraft:player" {
					s.Entities[fmt.Sprint(e.Data["NameTag"])]++
				}
			}
		}
	}
	b, err := json.Marshal(s)
	fmt.Println("seen", string(b))
	return err
}

// result is what the kills of one host did.
type result struct {
	kills, joins, acknowledged       int
	lost, missing, doubled, problems []string
}

// run kills a server some times over one world.
func run(t *testing.T, host string, times int) (r result) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir), 0o777); err != nil {
		t.Fatal(err)
	}
	env := []string{envHost + "=" + host, envDir + "=" + dir}
	acknowledged := map[string]bool{}
	everyone := false // whether all entities were in a save
	for range times {
		srv := start(t, append(env, envProgram+"=server")...)
		address, ok := srv.wait("listening", time.Minute)
		if !ok {
			srv.kill()
			t.Fatalf("the server does not start: %s", srv.stderr.String())
		}
		player := join(t, address)
		if player != nil {
			r.joins++
		}
		end := time.After(time.Duration(300+rand.IntN(2500)) * time.Millisecond)
		var placed, saving []string
		saves := 0
	reading:
		for {
			select {
			case line, ok := <-srv.lines:
				if !ok {
					t.Fatalf("the server ended by itself: %s", srv.stderr.String())
				}
				at, isPlaced := strings.CutPrefix(line, "placed ")
				switch {
				case isPlaced:
					placed = append(placed, at)
				case line == "saving":
					saving = placed
				case line == "saved":
					saves++
					for _, at := range saving {
						acknowledged[at] = true
					}
				}
			case <-end:
				break reading
			}
		}
		srv.kill()
		if player != nil {
			player.kill()
		}
		everyone = everyone || saves > 0
		r.kills++
		r.compare(t, env, acknowledged, everyone)
	}
	r.acknowledged = len(acknowledged)
	return r
}

// join starts a client; the handshake hangs sometimes, so it has three tries.
func join(t *testing.T, address string) *child {
	for range 3 {
		c := start(t, envProgram+"=client", envAddress+"="+address)
		if _, ok := c.wait("joined", 12*time.Second); ok {
			return c
		}
		c.kill()
		t.Logf("a join failed: %s", c.stderr.String())
	}
	return nil
}

// compare compares what is stored with what was acknowledged.
func (r *result) compare(t *testing.T, env []string, acknowledged map[string]bool, everyone bool) {
	c := start(t, append(env, envProgram+"=look")...)
	text, ok := c.wait("seen", time.Minute)
	c.kill()
	var s seen
	if err := json.Unmarshal([]byte(text), &s); !ok || err != nil {
		t.Fatalf("the world cannot be looked at: %v: %s", err, c.stderr.String())
	}
	r.problems = append(r.problems, s.Problems...)
	there := map[string]bool{}
	for _, b := range s.Blocks {
		there[b] = true
	}
	for at := range acknowledged {
		if !there[at] {
			r.lost = append(r.lost, at)
			delete(acknowledged, at) // counted once
		}
	}
	for i := range entities {
		name := fmt.Sprint("walker ", i)
		switch n := s.Entities[name]; {
		case n == 0 && everyone:
			r.missing = append(r.missing, name)
		case n > 1:
			r.doubled = append(r.doubled, fmt.Sprint(name, ": ", n))
		}
	}
}

// TestKills demands that kills take nothing that a save acknowledged, and that
// no entity is lost or there twice.
func TestKills(t *testing.T) {
	r := run(t, *under, *kills)
	t.Logf("%s: %d kills, %d joins, %d blocks acknowledged: %d lost, %d entities missing, %d twice", *under, r.kills, r.joins,
		r.acknowledged, len(r.lost), len(r.missing), len(r.doubled))
	if len(r.lost)+len(r.missing)+len(r.doubled)+len(r.problems) > 0 {
		t.Errorf("lost: %v\nmissing: %v\ntwice: %v\nproblems: %v", r.lost, r.missing, r.doubled, r.problems)
	}
	if r.joins == 0 {
		t.Error("no player could join in any run")
	}
	if r.joins > 0 && r.acknowledged == 0 {
		t.Error("no block was acknowledged, so nothing was tested")
	}
}

// TestControl demands that a host that acknowledges too early is caught.
func TestControl(t *testing.T) {
	for range 3 {
		if r := run(t, "control", 2); len(r.lost)+len(r.missing)+len(r.doubled) > 0 {
			t.Logf("caught: %d blocks lost, %d entities missing, %d twice", len(r.lost), len(r.missing), len(r.doubled))
			return
		}
	}
	t.Error("a host that says that columns are stored two seconds before they are was not caught")
}
