package dragonfly

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cherrygrove/hosts/go/cherrygrove"
	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/google/uuid"
)

// Settings returns the settings, which the worlds of the provider share. They
// are whole in a new world, too.
func (p *Provider) Settings() *world.Settings { return p.set }

// gameModes and difficulties are the names of what dragonfly has numbers for.
var (
	gameModes    = []string{"survival", "creative", "adventure", "spectator"}
	difficulties = []string{"peaceful", "easy", "normal", "hard"}
)

// loadSettings reads the settings; what is not stored has the value that
// dragonfly gives a new world.
func (p *Provider) loadSettings() (*world.Settings, error) {
	c, err := p.w.Settings()
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	weather := func() int64 { return int64(rand.IntN(8400)+600) * 20 }
	s := &world.Settings{
		Name: or(c.Name, "World"), Time: or(c.Time, 0), CurrentTick: or(c.GameTime, 0), TimeCycle: or(c.TimeCycle, true),
		RainTime: or(c.RainTime, weather()), Raining: or(c.Raining, false), ThunderTime: or(c.ThunderTime, weather()),
		Thundering: or(c.Thundering, false), WeatherCycle: or(c.WeatherCycle, true),
		RequiredSleepTicks: or(c.RequiredSleepTicks, 0), TickRange: int32(or(c.TickRange, 6)),
		Spawn:           p.conf.Spawn,
		DefaultGameMode: world.GameModeSurvival, Difficulty: world.DifficultyNormal,
	}
	if c.Spawn != nil {
		s.Spawn = cubePos(c.Spawn.Block)
	}
	for i, name := range gameModes {
		if c.GameMode != nil && *c.GameMode == name {
			s.DefaultGameMode, _ = world.GameModeByID(i)
		}
	}
	for i, name := range difficulties {
		if c.Difficulty != nil && *c.Difficulty == name {
			s.Difficulty, _ = world.DifficultyByID(i)
		}
	}
	return s, nil
}

// or returns a value, or another one if there is none.
func or[T any](p *T, other T) T {
	if p != nil {
		return *p
	}
	return other
}

// SaveSettings writes the settings into the commit of the columns that were
// stored before it, and waits until that is on the disk: what World.Save saved
// survives a kill. A failure goes to OnTrouble.
func (p *Provider) SaveSettings(s *world.Settings) {
	if err := p.saveSettings(s); err != nil {
		p.report(fmt.Errorf("save settings: %w", err))
	}
}

func (p *Provider) saveSettings(s *world.Settings) error {
	if p.closed.Load() {
		return errClosed
	}
	tx, err := p.w.Begin()
	if err != nil {
		return err
	}
	defer tx.Close()
	if err := tx.Settings(storedSettings(s)); err != nil {
		return err
	}
	if err := tx.Submit(); err != nil {
		return err
	}
	return p.w.Flush()
}

// storedSettings returns settings as the store has them.
func storedSettings(s *world.Settings) *cherrygrove.Settings {
	s.Lock()
	defer s.Unlock()
	now, rng := time.Now(), int64(s.TickRange)
	engine := "dragonfly"
	name, t, tick, rain, thunder, sleep := s.Name, s.Time, s.CurrentTick, s.RainTime, s.ThunderTime, s.RequiredSleepTicks
	timeCycle, weatherCycle, raining, thundering := s.TimeCycle, s.WeatherCycle, s.Raining, s.Thundering
	if len(name) > 256 {
		name = cut(name, 256)
	}
	c := &cherrygrove.Settings{
		Name: &name, Engine: &engine, Changed: &now, Time: &t, GameTime: &tick, RainTime: &rain, ThunderTime: &thunder,
		RequiredSleepTicks: &sleep, TickRange: &rng, TimeCycle: &timeCycle, WeatherCycle: &weatherCycle,
		Raining: &raining, Thundering: &thundering, Spawn: &cherrygrove.Spawn{Dimension: "minecraft:overworld",
			Block: cherrygrove.Pos{X: int64(s.Spawn[0]), Y: int64(s.Spawn[1]), Z: int64(s.Spawn[2])}},
	}
	if i, ok := world.GameModeID(s.DefaultGameMode); ok && i < len(gameModes) {
		c.GameMode = &gameModes[i]
	}
	if i, ok := world.DifficultyID(s.Difficulty); ok && i < len(difficulties) {
		c.Difficulty = &difficulties[i]
	}
	return c
}

// cut cuts a text at a character.
func cut(s string, n int) string {
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

// LoadPlayerSpawnPosition returns the spawn of a player.
func (p *Provider) LoadPlayerSpawnPosition(id uuid.UUID) (pos cube.Pos, exists bool, err error) {
	if p.closed.Load() {
		return pos, false, errClosed
	}
	b, err := p.w.Property(spawnPrefix + id.String())
	if errors.Is(err, cherrygrove.ErrAbsent) {
		return pos, false, nil
	}
	if err == nil && len(b) != 24 {
		err = fmt.Errorf("%d bytes instead of 24", len(b))
	}
	if err != nil {
		return pos, false, fmt.Errorf("load spawn of player %v: %w", id, err)
	}
	for i := range pos {
		pos[i] = int(int64(binary.LittleEndian.Uint64(b[8*i:])))
	}
	return pos, true, nil
}

// SavePlayerSpawnPosition stores the spawn of a player.
func (p *Provider) SavePlayerSpawnPosition(id uuid.UUID, pos cube.Pos) error {
	if p.closed.Load() {
		return errClosed
	}
	var b []byte
	for _, v := range pos {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	if err := p.submitProperty(spawnPrefix+id.String(), b); err != nil {
		return fmt.Errorf("save spawn of player %v: %w", id, err)
	}
	return nil
}

// submitProperty accepts a property as StoreColumn accepts a column.
func (p *Provider) submitProperty(name string, b []byte) error {
	tx, err := p.w.Begin()
	if err != nil {
		return err
	}
	defer tx.Close()
	if err := tx.Property(name, b); err != nil {
		return err
	}
	return tx.Submit()
}

// storedBiomes returns the numbers of biomes that no registry names.
func (p *Provider) storedBiomes() ([]uint32, error) {
	b, err := p.w.Property(extraBiomes)
	if errors.Is(err, cherrygrove.ErrAbsent) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := make([]uint32, 0, len(b)/4)
	for ; len(b) >= 4; b = b[4:] {
		out = append(out, binary.LittleEndian.Uint32(b))
	}
	return out, nil
}

// keepBiomes adds to these numbers.
func (p *Provider) keepBiomes(more []uint32) error {
	all, err := p.storedBiomes()
	if err != nil {
		return err
	}
	var b []byte
	seen := map[uint32]bool{}
	for _, n := range append(all, more...) {
		if !seen[n] {
			seen[n] = true
			b = binary.LittleEndian.AppendUint32(b, n)
		}
	}
	return p.submitProperty(extraBiomes, b)
}
