package killtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/df-mc/dragonfly/server"
	"github.com/df-mc/dragonfly/server/block"
	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/entity"
	"github.com/df-mc/dragonfly/server/item"
	"github.com/df-mc/dragonfly/server/player"
	"github.com/df-mc/dragonfly/server/session"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/go-gl/mathgl/mgl64"
	"github.com/sandertv/gophertunnel/minecraft"
)

// entities is how many entities walk about.
const entities = 40

// reach is how far from the origin players build and entities walk, in blocks.
const reach = 60

// serve runs a server until it is killed. It prints
//
//	listening ADDRESS
//	placed X Y Z      a block that a player builds, before it is there
//	saving            a save begins: all that was printed before is in it
//	saved             it has returned
func serve(name, dir string) error {
	h, err := openHost(name, dir)
	if err != nil {
		return err
	}
	conf := server.Config{
		Log: quiet, AuthDisabled: true, DisableResourceBuilding: true, MaxChunkRadius: 6, SaveInterval: -1, RandomTickSpeed: -1,
		WorldProvider: h.worlds, PlayerProvider: h.players,
		Listeners: []func(server.Config) (server.Listener, error){func(server.Config) (server.Listener, error) {
			l, err := minecraft.ListenConfig{AuthenticationDisabled: true, StatusProvider: minecraft.NewStatusProvider("kill", "test")}.
				Listen("raknet", "127.0.0.1:0")
			if err != nil {
				return nil, err
			}
			fmt.Println("listening", l.Addr())
			return listener{l}, nil
		}},
	}
	srv := conf.New()
	w := srv.World()
	if err := populate(w); err != nil {
		return err
	}
	go tickle(w)
	srv.Listen()
	for p := range srv.Accept() {
		p.SetGameMode(world.GameModeCreative)
		_ = p.Inventory().SetItem(0, item.NewStack(block.Gold{}, 64))
		p.Handle(&builder{})
	}
	return nil
}

// listener is raknet as dragonfly takes it.
type listener struct{ *minecraft.Listener }

func (l listener) Accept() (session.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return c.(*minecraft.Conn), nil
}

func (l listener) Disconnect(c session.Conn, reason string) error {
	return l.Listener.Disconnect(c.(*minecraft.Conn), reason)
}

// builder prints what a player builds.
type builder struct{ player.NopHandler }

func (*builder) HandleBlockPlace(_ *player.Context, pos cube.Pos, _ world.Block) {
	fmt.Println("placed", pos[0], pos[1], pos[2])
}

// populate loads the area and adds the entities that are not there.
func populate(w *world.World) error {
	_, err := world.Call(context.Background(), w, func(tx *world.Tx) (int, error) {
		for x := -reach; x <= reach; x += 16 {
			for z := -reach; z <= reach; z += 16 {
				tx.Block(cube.Pos{x, ground, z})
			}
		}
		there := map[string]bool{}
		for e := range tx.Entities() {
			if n, ok := e.(interface{ NameTag() string }); ok {
				there[n.NameTag()] = true
			}
		}
		for i := range entities {
			if name := fmt.Sprint("walker ", i); !there[name] {
				tx.AddEntity(entity.NewText(name, place()))
			}
		}
		return 0, nil
	})
	return err
}

// place returns a place in the area.
func place() mgl64.Vec3 {
	return mgl64.Vec3{rand.Float64()*2*reach - reach, ground + 3, rand.Float64()*2*reach - reach}
}

// tickle moves entities across the borders of columns and saves, both as fast
// as it goes.
func tickle(w *world.World) {
	for {
		_ = w.Do(func(tx *world.Tx) {
			for e := range tx.Entities() {
				if t, ok := e.(*entity.Ent); ok && rand.IntN(2) == 0 {
					h := tx.RemoveEntity(t)
					tx.AddEntityAt(h, place())
				}
			}
			fmt.Println("saving")
		}).Wait(context.Background())
		w.Save()
		fmt.Println("saved")
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
	}
}
