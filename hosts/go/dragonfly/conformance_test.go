package dragonfly

import (
	"log/slog"
	"testing"

	"github.com/cherrygrove/hosts/go/dragonfly/providertest"
	"github.com/df-mc/dragonfly/server/player"
	"github.com/df-mc/dragonfly/server/world"
)

// maker opens providers of this package.
type maker struct{}

func (maker) Open(dir string, host providertest.Host) (world.Provider, error) {
	return Open(dir, Config{Log: slog.New(slog.DiscardHandler), Blocks: host.Blocks, Entities: host.Entities})
}

func (maker) OpenPlayers(_ string, p world.Provider) (player.Provider, error) {
	return p.(*Provider).Players(), nil
}

func TestMain(m *testing.M) {
	providertest.Main(m, map[string]providertest.Maker{"cherrygrove": maker{}})
}

// TestConformance demands all cases, without a known failure.
func TestConformance(t *testing.T) { providertest.Run(t, "cherrygrove", maker{}, nil) }
