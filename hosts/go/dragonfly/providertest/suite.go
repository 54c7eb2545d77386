// Package providertest is a conformance suite for implementations of
// dragonfly's world.Provider, and of player.Provider where there is one.
//
// A package that tests its provider calls Main from its TestMain and Run from
// one test. Cases that end a process run in a child, which is the same test
// binary started again.
package providertest

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/df-mc/dragonfly/server/player"
	"github.com/df-mc/dragonfly/server/world"
)

// Host is what the server knows that opens a world.
type Host struct {
	// Blocks are the blocks; nil stands for world.DefaultBlockRegistry.
	Blocks world.BlockRegistry
	// Entities are the kinds of entity. The zero value stands for the default
	// kinds and those that the cases make.
	Entities world.EntityRegistry
}

// Maker opens providers of one kind. A child process has a Maker of its own,
// so its methods know nothing but their arguments.
type Maker interface {
	// Open opens the world in dir, which exists and may be empty.
	Open(dir string, host Host) (world.Provider, error)
}

// PlayerMaker is a Maker whose providers also store players.
type PlayerMaker interface {
	Maker
	// OpenPlayers returns the player provider of the world in dir, which p
	// has open.
	OpenPlayers(dir string, p world.Provider) (player.Provider, error)
}

// Damager is a Maker that can change stored bytes of a world that is closed.
type Damager interface {
	Maker
	// Damage changes a stored column of the overworld so that it cannot be
	// read. The sound one, which is far away, must not be damaged.
	Damage(dir string, pos, sound world.ChunkPos) error
	// Stored returns what is stored of a column of the overworld, byte by byte.
	Stored(dir string, pos world.ChunkPos) ([]byte, error)
}

// Case is one demand on a provider.
type Case struct {
	Name string
	run  func(*C)
}

// limit is the time after which a case counts as hung.
const limit = 3 * time.Minute

// Cases returns all cases in the order in which Run runs them.
func Cases() []Case {
	return slices.Concat(columnCases, contentCases, entityCases, keptCases, settingsCases, placeCases, faultCases, endCases, playerCases)
}

// Run runs each case as a subtest. The keys of known are the cases that the
// provider is known to fail, the values say why: such a case must fail.
func Run(t *testing.T, name string, m Maker, known map[string]string) {
	for case_ := range known {
		if !slices.ContainsFunc(Cases(), func(c Case) bool { return c.Name == case_ }) {
			t.Errorf("%s is listed as a known failure, but is no case", case_)
		}
	}
	for _, cs := range Cases() {
		t.Run(cs.Name, func(t *testing.T) {
			failures, skipped := Try(t, name, m, cs)
			why, listed := known[cs.Name]
			switch {
			case skipped != "" && failures == "":
				t.Skip(skipped)
			case listed && failures == "":
				t.Errorf("passes, but is listed as a known failure: %s", why)
			case listed:
				t.Logf("fails as it is known to: %s\n%s", why, failures)
			case failures != "":
				t.Error(failures)
			}
		})
	}
}

// Try runs one case and returns its failures, and why it was skipped.
func Try(t testing.TB, name string, m Maker, cs Case) (failures, skipped string) {
	c := &C{t: t, Maker: m, name: name}
	c.finish(cs)
	return c.text(), c.skipped
}

// C is the state of a case that runs: it collects failures instead of failing
// the test, because a known failure is a success.
type C struct {
	Maker    Maker
	name     string
	t        testing.TB
	failures []string
	skipped  string
	closers  []func()
}

// stop is what ends a case early.
type stop struct{}

// finish runs a case to its end, or until it has hung.
func (c *C) finish(cs Case) {
	inner := &C{t: c.t, Maker: c.Maker, name: c.name}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if r := recover(); r != nil {
				if _, ok := r.(stop); !ok {
					inner.failures = append(inner.failures, fmt.Sprintf("panic: %v\n%s", r, debug.Stack()))
				}
			}
			inner.closeAll()
		}()
		cs.run(inner)
	}()
	select {
	case <-done:
		c.failures, c.skipped = inner.failures, inner.skipped
	case <-time.After(limit):
		c.failures = []string{fmt.Sprintf("does not return within %v", limit)}
	}
}

// closeAll closes what the case left open; a provider may panic there, too.
func (c *C) closeAll() {
	for _, f := range slices.Backward(c.closers) {
		func() {
			defer func() {
				if r := recover(); r != nil {
					c.Errorf("panic at the end: %v", r)
				}
			}()
			f()
		}()
	}
}

// Errorf notes a failure.
func (c *C) Errorf(format string, args ...any) {
	c.failures = append(c.failures, fmt.Sprintf(format, args...))
}

// Fatalf notes a failure and ends the case.
func (c *C) Fatalf(format string, args ...any) {
	c.Errorf(format, args...)
	panic(stop{})
}

// Skipf ends the case without a verdict.
func (c *C) Skipf(format string, args ...any) {
	c.skipped = fmt.Sprintf(format, args...)
	panic(stop{})
}

// text returns the failures, at most ten.
func (c *C) text() string {
	f := c.failures
	if len(f) > 10 {
		f = append(slices.Clone(f[:10]), fmt.Sprintf("… and %d more", len(f)-10))
	}
	return strings.Join(f, "\n")
}

// Dir returns a fresh directory.
func (c *C) Dir() string { return c.t.TempDir() }

// Open opens a provider, and closes it at the end of the case.
func (c *C) Open(dir string) world.Provider { return c.OpenAs(dir, Host{}) }

// OpenAs opens a provider for a server that knows other things.
func (c *C) OpenAs(dir string, host Host) world.Provider {
	p, err := openAs(c.Maker, dir, host)
	if err != nil {
		c.Fatalf("open: %v", err)
	}
	c.closers = append(c.closers, func() { _ = p.Close() })
	return p
}

// Reopen closes a provider and opens its world again.
func (c *C) Reopen(dir string, p world.Provider) world.Provider {
	if err := p.Close(); err != nil {
		c.Fatalf("close: %v", err)
	}
	return c.Open(dir)
}

// openAs opens a provider and gives it its block registry, as
// world.Config.New does.
func openAs(m Maker, dir string, host Host) (world.Provider, error) {
	if host.Blocks == nil {
		host.Blocks = world.DefaultBlockRegistry
	}
	host.Blocks.Finalize()
	if len(host.Entities.Types()) == 0 {
		host.Entities = allEntities
	}
	p, err := m.Open(dir, host)
	if err != nil {
		return nil, err
	}
	if s, ok := p.(interface{ SetBlockRegistry(world.BlockRegistry) }); ok {
		s.SetBlockRegistry(host.Blocks)
	}
	return p, nil
}
