package cherrygrove

// #include <cherrygrove.h>
import "C"

import (
	"runtime"
	"time"
)

// Spawn is where players appear who have no place of their own.
type Spawn struct {
	Dimension string
	Block     Pos
}

// Settings are those of a world. A nil field is a setting that the world does
// not have, or that a transaction leaves as it is.
type Settings struct {
	Name, Engine, GameMode, Difficulty *string
	Thumbnail                          []byte // a PNG file of at most 256 KiB
	Created, Changed                   *time.Time
	Seed, Time, GameTime               *int64
	RainTime, ThunderTime              *int64 // ticks until that changes
	RequiredSleepTicks, TickRange      *int64
	TimeCycle, WeatherCycle            *bool
	Raining, Thundering                *bool
	Spawn                              *Spawn
}

// Settings returns the settings of the world.
func (w *World) Settings() (*Settings, error) {
	var h C.cg_handle
	var v *C.cg_settings
	e := newError()
	if err := e.result(C.cg_settings_load(w.h.c(), &h, &v, e.c())); err != nil {
		return nil, err
	}
	defer C.cg_release(h)
	s := &Settings{}
	for _, f := range s.texts(v) {
		if v.present&f.bit != 0 {
			t := goString(*f.c)
			*f.g = &t
		}
	}
	for _, f := range s.numbers(v) {
		if v.present&f.bit != 0 {
			n := int64(*f.c)
			*f.g = &n
		}
	}
	for _, f := range s.flags(v) {
		if v.present&f.bit != 0 {
			b := *f.c != 0
			*f.g = &b
		}
	}
	if v.present&C.CG_SET_CREATED != 0 {
		t := time.UnixMilli(int64(v.created_ms))
		s.Created = &t
	}
	if v.present&C.CG_SET_CHANGED != 0 {
		t := time.UnixMilli(int64(v.changed_ms))
		s.Changed = &t
	}
	if v.present&C.CG_SET_THUMBNAIL != 0 {
		s.Thumbnail = append([]byte{}, borrowed(v.thumbnail)...)
	}
	if v.present&C.CG_SET_SPAWN != 0 {
		s.Spawn = &Spawn{goString(v.spawn_dimension), goPos(v.spawn_block)}
	}
	return s, nil
}

// A field of both structs, and its bit.
type field[G, C_ any] struct {
	bit C.uint64_t
	g   **G
	c   *C_
}

func (s *Settings) texts(v *C.cg_settings) []field[string, C.cg_str] {
	return []field[string, C.cg_str]{
		{C.CG_SET_NAME, &s.Name, &v.name}, {C.CG_SET_ENGINE, &s.Engine, &v.engine},
		{C.CG_SET_GAME_MODE, &s.GameMode, &v.game_mode}, {C.CG_SET_DIFFICULTY, &s.Difficulty, &v.difficulty},
	}
}

func (s *Settings) numbers(v *C.cg_settings) []field[int64, C.int64_t] {
	return []field[int64, C.int64_t]{
		{C.CG_SET_SEED, &s.Seed, &v.seed}, {C.CG_SET_TIME, &s.Time, &v.time}, {C.CG_SET_GAME_TIME, &s.GameTime, &v.game_time},
		{C.CG_SET_RAIN_TIME, &s.RainTime, &v.rain_time}, {C.CG_SET_THUNDER_TIME, &s.ThunderTime, &v.thunder_time},
		{C.CG_SET_REQUIRED_SLEEP_TICKS, &s.RequiredSleepTicks, &v.required_sleep_ticks},
		{C.CG_SET_TICK_RANGE, &s.TickRange, &v.tick_range},
	}
}

func (s *Settings) flags(v *C.cg_settings) []field[bool, C.uint8_t] {
	return []field[bool, C.uint8_t]{
		{C.CG_SET_TIME_CYCLE, &s.TimeCycle, &v.time_cycle}, {C.CG_SET_WEATHER_CYCLE, &s.WeatherCycle, &v.weather_cycle},
		{C.CG_SET_RAINING, &s.Raining, &v.raining}, {C.CG_SET_THUNDERING, &s.Thundering, &v.thundering},
	}
}

// c returns the settings as the library reads them.
func (s *Settings) c(pin *runtime.Pinner) *C.cg_settings {
	v := &C.cg_settings{struct_size: C.uint32_t(sizeOf[C.cg_settings]())}
	for _, f := range s.texts(v) {
		if *f.g != nil {
			v.present |= f.bit
			*f.c = pinStr(pin, **f.g)
		}
	}
	for _, f := range s.numbers(v) {
		if *f.g != nil {
			v.present |= f.bit
			*f.c = C.int64_t(**f.g)
		}
	}
	for _, f := range s.flags(v) {
		if *f.g != nil {
			v.present |= f.bit
			*f.c = C.uint8_t(boolInt(**f.g))
		}
	}
	if s.Created != nil {
		v.present |= C.CG_SET_CREATED
		v.created_ms = C.int64_t(s.Created.UnixMilli())
	}
	if s.Changed != nil {
		v.present |= C.CG_SET_CHANGED
		v.changed_ms = C.int64_t(s.Changed.UnixMilli())
	}
	if s.Thumbnail != nil {
		v.present |= C.CG_SET_THUMBNAIL
		v.thumbnail = lend(s.Thumbnail)
		pinSlice(pin, s.Thumbnail)
	}
	if s.Spawn != nil {
		v.present |= C.CG_SET_SPAWN
		v.spawn_dimension, v.spawn_block = pinStr(pin, s.Spawn.Dimension), s.Spawn.Block.c()
	}
	return v
}
