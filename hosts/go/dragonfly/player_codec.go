package dragonfly

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/entity/effect"
	"github.com/df-mc/dragonfly/server/item"
	"github.com/df-mc/dragonfly/server/item/inventory"
	"github.com/df-mc/dragonfly/server/player"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/go-gl/mathgl/mgl64"
)

// playerVersion is the version of the NBT of a player. A larger one is of a
// later release, and is refused.
const playerVersion = 1

// Names of the inventories of a player in its NBT.
const (
	invMain   = "Inventory"
	invOff    = "OffHand"
	invArmour = "Armour"
	invEnder  = "EnderChest"
)

// keptItems are items that the server does not know, by inventory and slot.
type keptItems map[string]map[int]map[string]any

// writePlayer returns the NBT of a player. What belongs to the connection
// (skin, locale, XUID) is not stored.
func writePlayer(c player.Config, kept keptItems) map[string]any {
	mode, ok := world.GameModeID(c.GameMode)
	if !ok {
		mode = 0
	}
	m := map[string]any{
		"Version": int32(playerVersion), "Name": c.Name, "GameMode": int32(mode),
		"Position": vec(c.Position), "Rotation": []float64{c.Rotation[0], c.Rotation[1]}, "Velocity": vec(c.Velocity),
		"Health": c.Health, "MaxHealth": c.MaxHealth, "FoodTick": int64(c.FoodTick), "Food": int64(c.Food),
		"Exhaustion": c.Exhaustion, "Saturation": c.Saturation, "AirSupply": int64(c.AirSupply),
		"MaxAirSupply": int64(c.MaxAirSupply), "EnchantmentSeed": c.EnchantmentSeed, "Experience": int64(c.Experience),
		"HeldSlot": int64(c.HeldSlot), "FireTicks": c.FireTicks, "FallDistance": c.FallDistance,
	}
	slots := map[string][]item.Stack{}
	if c.Inventory != nil {
		slots[invMain] = c.Inventory.Slots()
	}
	if c.OffHand != nil {
		slots[invOff] = c.OffHand.Slots()
	}
	if c.Armour != nil {
		slots[invArmour] = c.Armour.Slots()
	}
	if c.EnderChestInventory != nil {
		slots[invEnder] = c.EnderChestInventory.Slots()
	}
	for name, stacks := range slots {
		m[name] = writeStacks(stacks, kept[name])
	}
	effects := []any{}
	for _, e := range c.Effects {
		if id, ok := effect.ID(e.Type()); ok {
			effects = append(effects, map[string]any{"Id": int32(id), "Level": int32(e.Level()), "Duration": int64(e.Duration()),
				"Ambient": e.Ambient(), "Hidden": e.ParticlesHidden(), "Infinite": e.Infinite()})
		}
	}
	m["Effects"] = effects
	return m
}

func vec(v mgl64.Vec3) []float64 { return []float64{v[0], v[1], v[2]} }

// writeStacks returns the NBT of the slots that are not empty, by number. An
// item that the server does not know stays in its slot while that is empty.
func writeStacks(stacks []item.Stack, kept map[int]map[string]any) map[string]any {
	m := map[string]any{}
	for i, s := range stacks {
		if !s.Empty() {
			m[strconv.Itoa(i)] = item.WriteNBT(s, true)
		} else if data, ok := kept[i]; ok {
			m[strconv.Itoa(i)] = data
		}
	}
	return m
}

// reader reads fields and notes the first that is missing.
type reader struct {
	m   map[string]any
	err error
}

// get reads a field of a type.
func get[T any](r *reader, key string) (v T) {
	v, ok := r.m[key].(T)
	if !ok && r.err == nil {
		r.err = fmt.Errorf("the field %s of the player is %T", key, r.m[key])
	}
	return v
}

// floats reads a list of n numbers.
func floats(r *reader, key string, n int) []float64 {
	out := make([]float64, n)
	list := get[[]any](r, key)
	for i := range out {
		ok := i < len(list)
		if ok {
			out[i], ok = list[i].(float64)
		}
		if !ok && r.err == nil {
			r.err = fmt.Errorf("the field %s of the player has not %d numbers", key, n)
		}
	}
	return out
}

// readPlayer makes a player out of its NBT. All fields must be there: a player
// that cannot be decoded whole is an error, and not a poorer player.
func readPlayer(m map[string]any) (player.Config, keptItems, error) {
	r := &reader{m: m}
	if v := get[int32](r, "Version"); r.err == nil && v > playerVersion {
		return player.Config{}, nil, fmt.Errorf("the player is of version %d, and this release reads up to %d", v, playerVersion)
	}
	mode, ok := world.GameModeByID(int(get[int32](r, "GameMode")))
	if !ok {
		return player.Config{}, nil, fmt.Errorf("there is no game mode %v", m["GameMode"])
	}
	pos, rot, vel := floats(r, "Position", 3), floats(r, "Rotation", 2), floats(r, "Velocity", 3)
	kept := keptItems{}
	c := player.Config{
		Name: get[string](r, "Name"), GameMode: mode,
		Position: mgl64.Vec3(pos), Rotation: cube.Rotation(rot), Velocity: mgl64.Vec3(vel),
		Health: get[float64](r, "Health"), MaxHealth: get[float64](r, "MaxHealth"),
		FoodTick: int(get[int64](r, "FoodTick")), Food: int(get[int64](r, "Food")),
		Exhaustion: get[float64](r, "Exhaustion"), Saturation: get[float64](r, "Saturation"),
		AirSupply: int(get[int64](r, "AirSupply")), MaxAirSupply: int(get[int64](r, "MaxAirSupply")),
		EnchantmentSeed: get[int64](r, "EnchantmentSeed"), Experience: int(get[int64](r, "Experience")),
		HeldSlot: int(get[int64](r, "HeldSlot")), FireTicks: get[int64](r, "FireTicks"),
		FallDistance: get[float64](r, "FallDistance"),
		Inventory:    inventory.New(36, nil), OffHand: inventory.New(1, nil), Armour: inventory.NewArmour(nil),
		EnderChestInventory: inventory.New(27, nil),
	}
	c.Effects = readEffects(r)
	for name, inv := range map[string]*inventory.Inventory{invMain: c.Inventory, invOff: c.OffHand,
		invArmour: c.Armour.Inventory(), invEnder: c.EnderChestInventory} {
		if err := readStacks(m[name], name, inv, kept); err != nil {
			return player.Config{}, nil, err
		}
	}
	if r.err == nil && (c.HeldSlot < 0 || c.HeldSlot > 8) {
		r.err = fmt.Errorf("the held slot is %d", c.HeldSlot)
	}
	return c, kept, r.err
}

// readStacks fills an inventory. An item that the server does not know is kept.
func readStacks(v any, name string, inv *inventory.Inventory, kept keptItems) error {
	m, ok := v.(map[string]any)
	if !ok && v != nil {
		return fmt.Errorf("the inventory %s is %T", name, v)
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		data, ok := m[key].(map[string]any)
		slot, err := strconv.Atoi(key)
		if !ok || err != nil || slot < 0 || slot >= inv.Size() {
			return fmt.Errorf("slot %q of the inventory %s is %T", key, name, m[key])
		}
		stack := item.ReadNBT(data, nil)
		if stack.Empty() || inv.SetItem(slot, stack) != nil {
			if kept[name] == nil {
				kept[name] = map[int]map[string]any{}
			}
			kept[name][slot] = data
		}
	}
	return nil
}

// readEffects reads the effects; one that the server does not know has no
// effect.
func readEffects(r *reader) []effect.Effect {
	var out []effect.Effect
	for _, v := range get[[]any](r, "Effects") {
		m, _ := v.(map[string]any)
		e := &reader{m: m}
		id, level, d := get[int32](e, "Id"), int(get[int32](e, "Level")), time.Duration(get[int64](e, "Duration"))
		ambient, hidden, infinite := get[uint8](e, "Ambient"), get[uint8](e, "Hidden"), get[uint8](e, "Infinite")
		if e.err != nil {
			r.err = e.err
			return nil
		}
		kind, ok := effect.ByID(int(id))
		if !ok {
			continue
		}
		var made effect.Effect
		lasting, isLasting := kind.(effect.LastingType)
		switch {
		case !isLasting:
			made = effect.NewInstant(kind, level)
		case infinite != 0:
			made = effect.NewInfinite(lasting, level)
		case ambient != 0:
			made = effect.NewAmbient(lasting, level, d)
		default:
			made = effect.New(lasting, level, d)
		}
		if hidden != 0 {
			made = made.WithoutParticles()
		}
		out = append(out, made)
	}
	return out
}
