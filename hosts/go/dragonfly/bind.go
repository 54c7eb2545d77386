package dragonfly

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/cherrygrove/hosts/go/cherrygrove"
	"github.com/df-mc/dragonfly/server/world"
)

// bound is a binding of the blocks, biomes and entities of a server.
type bound struct {
	binding     *cherrygrove.Binding
	blocks      world.BlockRegistry
	air         uint32
	placeholder uint32            // stands for blocks that the server does not know
	kinds       []string          // of entities as they are stored, by number
	kindOf      map[string]uint32 // the way back
	biomes      map[uint32]bool   // numbers that the binding has
}

// Names that stand for what has none.
const (
	playerName  = "minecraft:player"
	noKind      = "dragonfly:entity" // an entity without an identifier
	biomePrefix = "dragonfly:biome_" // a biome that is not registered
	extraBiomes = "dragonfly:biomes" // the property that lists numbers of such biomes
	spawnPrefix = "dragonfly:spawn/" // properties with spawns of players
)

// use calls f with the binding, which stays as it is until f returns.
func (p *Provider) use(f func(*bound) error) error {
	p.mu.RLock()
	if b := p.bound; b != nil {
		defer p.mu.RUnlock()
		return f(b)
	}
	p.mu.RUnlock()
	p.mu.Lock()
	if p.bound == nil {
		if err := p.bindLocked(nil, nil); err != nil {
			p.mu.Unlock()
			return err
		}
	}
	p.mu.Unlock()
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.bound == nil {
		return errClosed
	}
	return f(p.bound)
}

// bindLocked binds anew, with kinds of entity and biomes that the server
// turned out to have. The caller holds the lock for writing.
func (p *Provider) bindLocked(kinds []string, biomes []uint32) error {
	if p.closed.Load() {
		return errClosed
	}
	blocks := p.conf.Blocks
	if blocks == nil {
		blocks = world.DefaultBlockRegistry
		blocks.Finalize()
	}
	b := &bound{blocks: blocks, air: blocks.AirRuntimeID(), placeholder: placeholder(blocks),
		kindOf: map[string]uint32{}, biomes: map[uint32]bool{}}
	for _, t := range p.conf.Entities.Types() {
		b.kinds = append(b.kinds, namespaced(t.EncodeEntity()))
	}
	if p.everyKind {
		all, err := p.storedKinds()
		if err != nil {
			return err
		}
		b.kinds = append(b.kinds, all...)
	}
	b.kinds = append(b.kinds, noKind)
	if p.bound != nil {
		b.kinds = append(b.kinds, p.bound.kinds...)
		for n := range p.bound.biomes {
			biomes = append(biomes, n)
		}
	}
	b.kinds = append(b.kinds, kinds...)
	slices.Sort(b.kinds)
	b.kinds = slices.DeleteFunc(slices.Compact(b.kinds), func(k string) bool { return k == playerName })
	for i, k := range b.kinds {
		b.kindOf[k] = uint32(i)
	}
	known, err := p.known(b, biomes)
	if err != nil {
		return err
	}
	binding, err := p.w.Bind(known)
	if err != nil {
		return err
	}
	if p.bound != nil {
		p.bound.binding.Close()
	}
	b.binding = binding
	p.bound = b
	return nil
}

// known returns what the server knows, in the terms of the store.
func (p *Provider) known(b *bound, biomes []uint32) (*cherrygrove.Known, error) {
	k := &cherrygrove.Known{
		Placeholder: b.placeholder, Air: b.air, BiomePlaceholder: 0, Layers: 2, Order: cherrygrove.XZY,
		WordBits: 32, BiomeSideLog2: 4, Widths: 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<8 | 1<<16,
	}
	k.Blocks = make([]cherrygrove.BlockName, b.blocks.BlockCount())
	for i := range k.Blocks {
		rid := uint32(i)
		name, props, _ := b.blocks.RuntimeIDToState(rid)
		var flags uint32
		if b.blocks.FilteringBlock(rid) == 15 {
			flags |= cherrygrove.Opaque
		}
		if b.blocks.NBTBlock(rid) {
			flags |= cherrygrove.OwnsBlockEntity
		}
		k.Blocks[i] = cherrygrove.BlockName{Name: blockName(name, props), Flags: flags}
	}
	add := func(name string, n uint32) {
		if !b.biomes[n] {
			b.biomes[n] = true
			k.Biomes = append(k.Biomes, cherrygrove.BiomeName{Name: name, Number: n})
		}
	}
	for _, biome := range world.Biomes() {
		add("minecraft:"+biome.String(), uint32(biome.EncodeBiome()))
	}
	stored, err := p.storedBiomes()
	if err != nil {
		return nil, err
	}
	for _, n := range append(stored, biomes...) {
		add(biomePrefix+strconv.FormatUint(uint64(n), 10), n)
	}
	for n := range uint32(256) {
		add(biomePrefix+strconv.FormatUint(uint64(n), 10), n)
	}
	slices.SortFunc(k.Biomes, func(x, y cherrygrove.BiomeName) int { return int(x.Number) - int(y.Number) })
	k.Entities = b.kinds
	return k, nil
}

// placeholder returns the block that players see for one that the server does
// not know: the game's own block for that, else air.
func placeholder(blocks world.BlockRegistry) uint32 {
	for _, name := range []string{"minecraft:info_update", "minecraft:unknown"} {
		if rid, ok := blocks.StateToRuntimeID(name, nil); ok {
			return rid
		}
		if rid, ok := blocks.StateToRuntimeID(name, map[string]any{}); ok {
			return rid
		}
	}
	return blocks.AirRuntimeID()
}

// blockName spells a state of a block: name[key=value,…], keys ascending.
func blockName(name string, props map[string]any) string {
	if len(props) == 0 {
		return name
	}
	keys := make([]string, 0, len(props))
	for k := range props {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var s strings.Builder
	s.WriteString(name)
	for i, k := range keys {
		sep := byte(',')
		if i == 0 {
			sep = '['
		}
		s.WriteByte(sep)
		s.WriteString(k)
		s.WriteByte('=')
		fmt.Fprint(&s, props[k])
	}
	s.WriteByte(']')
	return s.String()
}

// storedKinds returns all kinds of entity that the world has.
func (p *Provider) storedKinds() ([]string, error) {
	n, err := p.w.Count(cherrygrove.Entities)
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, n)
	for i := range n {
		name, err := p.w.NameOf(cherrygrove.Entities, i)
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(name, ":") { // the store's own
			out = append(out, name)
		}
	}
	return out, nil
}

// namespaced returns a name as it is stored: with a namespace, and without the
// characters that names of the store give a meaning.
func namespaced(name string) string {
	if !strings.Contains(name, ":") {
		name = "dragonfly:" + name
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("@[]=,", r) || r < ' ' || r == 0x7f || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, name)
}
