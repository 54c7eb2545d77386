package providertest

import (
	"reflect"
	"time"

	"github.com/df-mc/dragonfly/server/block"
	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/entity/effect"
	"github.com/df-mc/dragonfly/server/item"
	"github.com/df-mc/dragonfly/server/item/enchantment"
	"github.com/df-mc/dragonfly/server/item/inventory"
	"github.com/df-mc/dragonfly/server/player"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/go-gl/mathgl/mgl64"
	"github.com/google/uuid"
)

// playerCases are those of players.
var playerCases = []Case{{"players", playersCase}}

// fullPlayer returns a player with a value in each field that is stored.
func fullPlayer(id uuid.UUID) player.Config {
	conf := player.Config{
		UUID: id, Name: "Ærøskøbing", GameMode: world.GameModeCreative,
		Position: mgl64.Vec3{-12.0625, 70.1, 3e7}, Rotation: cube.Rotation{91.5, -12.25}, Velocity: mgl64.Vec3{0.1, -0.2, 0.3},
		Health: 13.5, MaxHealth: 30, FoodTick: 7, Food: 12, Exhaustion: 1.25, Saturation: 2.5,
		AirSupply: 123, MaxAirSupply: 400, EnchantmentSeed: -5, Experience: 1234, HeldSlot: 4,
		Inventory: inventory.New(36, nil), OffHand: inventory.New(1, nil), Armour: inventory.NewArmour(nil),
		EnderChestInventory: inventory.New(27, nil), FireTicks: 60, FallDistance: 4.5,
		Effects: []effect.Effect{
			effect.New(effect.Speed, 2, 90*time.Second), effect.NewAmbient(effect.Haste, 1, time.Minute),
			effect.NewInfinite(effect.NightVision, 1),
		},
	}
	sword := item.NewStack(item.Sword{Tier: item.ToolTierDiamond}, 1).WithCustomName("Knife").
		WithEnchantments(item.NewEnchantment(enchantment.Sharpness, 3)).Damage(7)
	_ = conf.Inventory.SetItem(0, sword)
	_ = conf.Inventory.SetItem(35, item.NewStack(block.Dirt{}, 63))
	_ = conf.OffHand.SetItem(0, item.NewStack(item.Arrow{}, 9))
	conf.Armour.SetHelmet(item.NewStack(item.Helmet{Tier: item.ArmourTierIron{}}, 1))
	conf.Armour.SetBoots(item.NewStack(item.Boots{Tier: item.ArmourTierDiamond{}}, 1).Damage(3))
	_ = conf.EnderChestInventory.SetItem(26, item.NewStack(item.Apple{}, 2).WithLore("from", "home"))
	return conf
}

// playersCase: a player comes back as it left, in the world that it left.
func playersCase(c *C) {
	m, ok := c.Maker.(PlayerMaker)
	if !ok {
		c.Skipf("the maker stores no players")
	}
	dir, id := c.Dir(), uuid.New()
	open := func(p world.Provider) player.Provider {
		players, err := m.OpenPlayers(dir, p)
		if err != nil {
			c.Fatalf("open players: %v", err)
		}
		c.closers = append(c.closers, func() { _ = players.Close() })
		return players
	}
	nether := world.Config{Dim: world.Nether, Synchronous: true}.New()
	defer nether.Close()
	find := func(dim world.Dimension) *world.World {
		if dim == world.Nether {
			return nether
		}
		return nil
	}
	p := c.Open(dir)
	players := open(p)
	if _, _, err := players.Load(uuid.New(), find); err == nil {
		c.Errorf("an unknown player is found")
	}
	want := fullPlayer(id)
	if err := players.Save(id, want, nether); err != nil {
		c.Fatalf("save: %v", err)
	}
	if err := players.Close(); err != nil {
		c.Errorf("close players: %v", err)
	}
	players = open(c.Reopen(dir, p))
	got, w, err := players.Load(id, find)
	if err != nil {
		c.Fatalf("load: %v", err)
	}
	if w != nether {
		c.Errorf("the player is not in the nether")
	}
	c.samePlayer(got, want)
}

// samePlayer compares players field by field.
func (c *C) samePlayer(got, want player.Config) {
	gv, wv := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range gv.NumField() {
		switch name := gv.Type().Field(i).Name; name {
		case "Session", "Skin", "XUID", "Locale": // of the connection
		case "Inventory", "OffHand", "EnderChestInventory":
			g, _ := gv.Field(i).Interface().(*inventory.Inventory)
			w, _ := wv.Field(i).Interface().(*inventory.Inventory)
			if g == nil {
				c.Errorf("%s is nil", name)
				continue
			}
			c.sameStacks(name, g.Slots(), w.Slots())
		case "Armour":
			if got.Armour == nil {
				c.Errorf("armour is nil")
				continue
			}
			c.sameStacks(name, got.Armour.Slots(), want.Armour.Slots())
		case "Effects":
			for j, w := range want.Effects {
				if j >= len(got.Effects) || got.Effects[j] != w {
					c.Errorf("effects are %v, not %v", got.Effects, want.Effects)
					break
				}
			}
		default:
			if g, w := gv.Field(i).Interface(), wv.Field(i).Interface(); !reflect.DeepEqual(g, w) {
				c.Errorf("%s is %v, not %v", name, g, w)
			}
		}
	}
}

// sameStacks compares the slots of an inventory.
func (c *C) sameStacks(name string, got, want []item.Stack) {
	if len(got) != len(want) {
		c.Errorf("%s has %d slots, not %d", name, len(got), len(want))
		return
	}
	for i := range want {
		if !got[i].Equal(want[i]) {
			c.Errorf("%s slot %d is %v, not %v", name, i, got[i], want[i])
		}
	}
}
