package providertest

import (
	"context"
	"math"

	"github.com/df-mc/dragonfly/server/block"
	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/entity"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/google/uuid"
)

// settingsCases are those of settings, spawns, and of kills.
var settingsCases = []Case{
	{"fresh_settings", freshSettingsCase},
	{"settings", settingsReopenCase},
	{"settings_after_save_and_kill", settingsKillCase},
	{"columns_after_save_and_kill", columnsKillCase},
	{"player_spawns", spawnsCase},
}

// freshSettingsCase: a new world has settings that a server can tick with.
func freshSettingsCase(c *C) {
	p := c.Open(c.Dir())
	s := p.Settings()
	if s == nil {
		c.Fatalf("no settings")
	}
	if s.DefaultGameMode == nil || s.Difficulty == nil {
		c.Fatalf("game mode is %v, difficulty %v: the server's tick panics", s.DefaultGameMode, s.Difficulty)
	}
	if s.Name == "" || s.TickRange <= 0 {
		c.Errorf("name is %q, tick range %d: nothing would tick", s.Name, s.TickRange)
	}
	w := world.Config{Provider: p, Synchronous: true, SaveInterval: -1, Entities: entity.DefaultRegistry}.New()
	for range 20 {
		w.AdvanceTick()
	}
	_ = w.Close()
}

// setAll gives each setting a value that no default has.
func setAll(s *world.Settings) {
	s.Lock()
	defer s.Unlock()
	s.Name = "Grüße 木"
	s.Spawn = cube.Pos{-1234, 77, 4321}
	s.Time, s.CurrentTick = 123456789, 987654321
	s.TimeCycle, s.WeatherCycle = false, false
	s.RainTime, s.Raining = 1234, true
	s.ThunderTime, s.Thundering = 5678, true
	s.RequiredSleepTicks = 55
	s.DefaultGameMode, s.Difficulty = world.GameModeAdventure, world.DifficultyHard
	s.TickRange = 9
}

// sameSettings demands the values of setAll.
func (c *C) sameSettings(s *world.Settings) {
	var want world.Settings
	setAll(&want)
	check := func(what string, got, want any) {
		if got != want {
			c.Errorf("%s is %v, not %v", what, got, want)
		}
	}
	check("name", s.Name, want.Name)
	check("spawn", s.Spawn, want.Spawn)
	check("time", s.Time, want.Time)
	check("current tick", s.CurrentTick, want.CurrentTick)
	check("time cycle", s.TimeCycle, want.TimeCycle)
	check("weather cycle", s.WeatherCycle, want.WeatherCycle)
	check("rain time", s.RainTime, want.RainTime)
	check("raining", s.Raining, want.Raining)
	check("thunder time", s.ThunderTime, want.ThunderTime)
	check("thundering", s.Thundering, want.Thundering)
	check("required sleep ticks", s.RequiredSleepTicks, want.RequiredSleepTicks)
	check("game mode", s.DefaultGameMode, want.DefaultGameMode)
	check("difficulty", s.Difficulty, want.Difficulty)
	check("tick range", s.TickRange, want.TickRange)
}

// settingsReopenCase: every setting survives a restart.
func settingsReopenCase(c *C) {
	dir := c.Dir()
	p := c.Open(dir)
	s := p.Settings()
	setAll(s)
	p.SaveSettings(s)
	p = c.Reopen(dir, p)
	c.sameSettings(p.Settings())
}

// Where saveProgram builds and what it knows of a player.
var (
	killedPlayer = uuid.MustParse("6f1a54f8-3c4b-4d6e-9a39-2f3b0b1f2a77")
	killedSpawn  = cube.Pos{5, 66, -7}
)

// saveProgram edits a world, saves it, and waits to be killed.
func saveProgram(m Maker, dir string, ready func()) error {
	p, err := openAs(m, dir, Host{})
	if err != nil {
		return err
	}
	w := world.Config{Provider: p, SaveInterval: -1, RandomTickSpeed: -1, Entities: entity.DefaultRegistry}.New()
	_, err = world.Call(context.Background(), w, func(tx *world.Tx) (int, error) {
		for x := range 64 {
			for z := range 64 {
				tx.SetBlock(cube.Pos{x - 32, 80, z - 32}, block.Gold{}, nil)
			}
		}
		return 0, nil
	})
	if err != nil {
		return err
	}
	w.SetPlayerSpawn(killedPlayer, killedSpawn)
	setAll(p.Settings())
	w.Save()
	ready()
	return nil
}

// settingsKillCase: what World.Save saved of the settings is there although
// the process was killed afterwards.
func settingsKillCase(c *C) {
	dir := c.Dir()
	c.runUntilReady("save", dir)
	s := c.Open(dir).Settings()
	if s.Time < 123456789 || s.CurrentTick < 987654321 {
		c.Errorf("time is %d, current tick %d", s.Time, s.CurrentTick)
	}
	s.Time, s.CurrentTick = 123456789, 987654321 // the world may have ticked before it was saved
	c.sameSettings(s)
}

// columnsKillCase: the same for blocks and for the spawn of a player.
func columnsKillCase(c *C) {
	dir := c.Dir()
	c.runUntilReady("save", dir)
	p := c.Open(dir)
	missing := 0
	for cx := int32(-2); cx < 2; cx++ {
		for cz := int32(-2); cz < 2; cz++ {
			col := c.load(p, world.ChunkPos{cx, cz}, world.Overworld)
			for x := range uint8(16) {
				for z := range uint8(16) {
					if col.Chunk.Block(x, 80, z, 0) != rid("gold_block") {
						missing++
					}
				}
			}
		}
	}
	if missing > 0 {
		c.Errorf("%d of 4096 saved blocks are missing", missing)
	}
	if pos, ok, err := p.LoadPlayerSpawnPosition(killedPlayer); !ok || err != nil || pos != killedSpawn {
		c.Errorf("spawn of the player is %v, %v, %v", pos, ok, err)
	}
}

// spawnsCase: spawn positions of players, also changed and far away ones.
func spawnsCase(c *C) {
	dir := c.Dir()
	p := c.Open(dir)
	want := map[uuid.UUID]cube.Pos{}
	for i := range 50 {
		id := uuid.New()
		want[id] = cube.Pos{i * 1000, 64, -i}
		if i == 7 {
			want[id] = cube.Pos{math.MaxInt32, -64, math.MinInt32}
		}
		if err := p.SavePlayerSpawnPosition(id, cube.Pos{1, 2, 3}); err != nil {
			c.Fatalf("save spawn: %v", err)
		}
		if err := p.SavePlayerSpawnPosition(id, want[id]); err != nil {
			c.Fatalf("save spawn again: %v", err)
		}
	}
	check := func() {
		for id, w := range want {
			if pos, ok, err := p.LoadPlayerSpawnPosition(id); !ok || err != nil || pos != w {
				c.Errorf("spawn of %v is %v, %v, %v, not %v", id, pos, ok, err, w)
			}
		}
	}
	check()
	p = c.Reopen(dir, p)
	check()
}
