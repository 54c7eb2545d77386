//! Settings of a world.

use std::ffi::c_int;

use cg_store::settings::{Spawn, WorldSettings};

use crate::call::call;
use crate::error::{CG_OK, Fault};
use crate::handle::{self, Held, Kind, Lent, Object, OutLent};
use crate::memory;
use crate::place;
use crate::text::{self, lend, lend_text};
use crate::types::{cg_bytes, cg_error, cg_handle, cg_settings, cg_str};
use crate::world::World;

/// The bits of `present`.
mod bit {
    pub(super) const NAME: u64 = 1 << 0;
    pub(super) const CREATED: u64 = 1 << 1;
    pub(super) const CHANGED: u64 = 1 << 2;
    pub(super) const ENGINE: u64 = 1 << 3;
    pub(super) const THUMBNAIL: u64 = 1 << 4;
    pub(super) const SEED: u64 = 1 << 5;
    pub(super) const SPAWN: u64 = 1 << 6;
    pub(super) const TIME: u64 = 1 << 7;
    pub(super) const GAME_TIME: u64 = 1 << 8;
    pub(super) const TIME_CYCLE: u64 = 1 << 9;
    pub(super) const RAINING: u64 = 1 << 10;
    pub(super) const RAIN_TIME: u64 = 1 << 11;
    pub(super) const THUNDERING: u64 = 1 << 12;
    pub(super) const THUNDER_TIME: u64 = 1 << 13;
    pub(super) const WEATHER_CYCLE: u64 = 1 << 14;
    pub(super) const REQUIRED_SLEEP_TICKS: u64 = 1 << 15;
    pub(super) const GAME_MODE: u64 = 1 << 16;
    pub(super) const DIFFICULTY: u64 = 1 << 17;
    pub(super) const TICK_RANGE: u64 = 1 << 18;
    pub(super) const ALL: u64 = (1 << 19) - 1;
}

/// The settings that a caller gave.
///
/// # Safety
/// The caller keeps the header's rules of memory.
pub(crate) unsafe fn read_given(given: *const cg_settings) -> Result<WorldSettings, Fault> {
    // SAFETY: as the caller says.
    let given = unsafe { memory::sized(given, "settings") }?;
    place::reserved(given.reserved | given.reserved2, "the settings")?;
    if given.present & !bit::ALL != 0 {
        let message = format!("present is {:#x}, known are {:#x}", given.present, bit::ALL);
        return Err(Fault::invalid(message));
    }
    let has = |bit: u64| given.present & bit != 0;
    let number = |bit: u64, value: i64| has(bit).then_some(value);
    let flag = |bit: u64, value: u8, what: &str| match value {
        _ if !has(bit) => Ok(None),
        0 | 1 => Ok(Some(value == 1)),
        _ => Err(Fault::invalid(format!("{what} is {value}, allowed are 0 and 1"))),
    };
    let text = |bit: u64, value: cg_str, what: &str| {
        if !has(bit) {
            return Ok(None);
        }
        // SAFETY: as the caller says.
        unsafe { text::text(value, what) }.map(|text| Some(text.to_owned()))
    };
    let mut settings = WorldSettings::default();
    settings.name = text(bit::NAME, given.name, "name")?;
    settings.engine = text(bit::ENGINE, given.engine, "engine")?;
    settings.game_mode = text(bit::GAME_MODE, given.game_mode, "game_mode")?;
    settings.difficulty = text(bit::DIFFICULTY, given.difficulty, "difficulty")?;
    if has(bit::THUMBNAIL) {
        // SAFETY: as the caller says.
        let png = unsafe { text::bytes(given.thumbnail, "thumbnail") }?;
        // Checked before it is copied.
        if png.len() > WorldSettings::MAX_THUMBNAIL_BYTES {
            let (found, most) = (png.len(), WorldSettings::MAX_THUMBNAIL_BYTES);
            let message = format!("the thumbnail has {found} bytes, at most {most} are allowed");
            return Err(Fault::of(cg_store::ErrorKind::TooLarge, message));
        }
        settings.set_thumbnail(png.to_vec())?;
    }
    if has(bit::SPAWN) {
        // SAFETY: as the caller says.
        let dimension = unsafe { text::name(given.spawn_dimension, "spawn_dimension") }?;
        settings.spawn = Some(Spawn { dimension, block: place::block(given.spawn_block) });
    }
    settings.created_ms = number(bit::CREATED, given.created_ms);
    settings.changed_ms = number(bit::CHANGED, given.changed_ms);
    settings.seed = number(bit::SEED, given.seed);
    settings.time = number(bit::TIME, given.time);
    settings.game_time = number(bit::GAME_TIME, given.game_time);
    settings.rain_time = number(bit::RAIN_TIME, given.rain_time);
    settings.thunder_time = number(bit::THUNDER_TIME, given.thunder_time);
    settings.required_sleep_ticks = number(bit::REQUIRED_SLEEP_TICKS, given.required_sleep_ticks);
    settings.tick_range = number(bit::TICK_RANGE, given.tick_range);
    settings.time_cycle = flag(bit::TIME_CYCLE, given.time_cycle, "time_cycle")?;
    settings.raining = flag(bit::RAINING, given.raining, "raining")?;
    settings.thundering = flag(bit::THUNDERING, given.thundering, "thundering")?;
    settings.weather_cycle = flag(bit::WEATHER_CYCLE, given.weather_cycle, "weather_cycle")?;
    Ok(settings)
}

/// Settings, and a struct of the header that points into them.
#[derive(Debug)]
struct SettingsView {
    /// The pointers of the view point into it. It is never changed.
    _settings: WorldSettings,
    view: cg_settings,
}

// SAFETY: the pointers point into what the view owns and never changes.
unsafe impl Send for SettingsView {}
// SAFETY: as above.
unsafe impl Sync for SettingsView {}

impl Object for SettingsView {}

impl Held for SettingsView {
    const KIND: Kind = Kind::Settings;
}

impl Lent for SettingsView {
    type View = cg_settings;

    fn view(&self) -> &cg_settings {
        &self.view
    }
}

impl SettingsView {
    fn new(settings: WorldSettings) -> Self {
        let present = |bit: u64, is_present: bool| if is_present { bit } else { 0 };
        let text = |text: &Option<String>| text.as_deref().map_or(cg_str::NONE, lend_text);
        let flag = |flag: Option<bool>| u8::from(flag == Some(true));
        let s = &settings;
        let view = cg_settings {
            struct_size: size_of::<cg_settings>() as u32,
            reserved: 0,
            present: present(bit::NAME, s.name.is_some())
                | present(bit::CREATED, s.created_ms.is_some())
                | present(bit::CHANGED, s.changed_ms.is_some())
                | present(bit::ENGINE, s.engine.is_some())
                | present(bit::THUMBNAIL, s.thumbnail.is_some())
                | present(bit::SEED, s.seed.is_some())
                | present(bit::SPAWN, s.spawn.is_some())
                | present(bit::TIME, s.time.is_some())
                | present(bit::GAME_TIME, s.game_time.is_some())
                | present(bit::TIME_CYCLE, s.time_cycle.is_some())
                | present(bit::RAINING, s.raining.is_some())
                | present(bit::RAIN_TIME, s.rain_time.is_some())
                | present(bit::THUNDERING, s.thundering.is_some())
                | present(bit::THUNDER_TIME, s.thunder_time.is_some())
                | present(bit::WEATHER_CYCLE, s.weather_cycle.is_some())
                | present(bit::REQUIRED_SLEEP_TICKS, s.required_sleep_ticks.is_some())
                | present(bit::GAME_MODE, s.game_mode.is_some())
                | present(bit::DIFFICULTY, s.difficulty.is_some())
                | present(bit::TICK_RANGE, s.tick_range.is_some()),
            name: text(&s.name),
            engine: text(&s.engine),
            game_mode: text(&s.game_mode),
            difficulty: text(&s.difficulty),
            thumbnail: s.thumbnail.as_deref().map_or(cg_bytes::NONE, lend),
            spawn_dimension: s
                .spawn
                .as_ref()
                .map_or(cg_str::NONE, |spawn| lend_text(spawn.dimension.as_str())),
            spawn_block: s.spawn.as_ref().map(|spawn| place::of_block(spawn.block)).unwrap_or_default(),
            created_ms: s.created_ms.unwrap_or_default(),
            changed_ms: s.changed_ms.unwrap_or_default(),
            seed: s.seed.unwrap_or_default(),
            time: s.time.unwrap_or_default(),
            game_time: s.game_time.unwrap_or_default(),
            rain_time: s.rain_time.unwrap_or_default(),
            thunder_time: s.thunder_time.unwrap_or_default(),
            required_sleep_ticks: s.required_sleep_ticks.unwrap_or_default(),
            tick_range: s.tick_range.unwrap_or_default(),
            time_cycle: flag(s.time_cycle),
            raining: flag(s.raining),
            thundering: flag(s.thundering),
            weather_cycle: flag(s.weather_cycle),
            reserved2: 0,
        };
        Self { _settings: settings, view }
    }
}

/// The settings of a world. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_settings_load(
    world: cg_handle,
    out: *mut cg_handle,
    view: *mut *const cg_settings,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_settings_load", error, || {
            let out = OutLent::new(out, view)?;
            let world = handle::find::<World>(world)?;
            out.put(SettingsView::new(world.host()?.settings()?))?;
            Ok(CG_OK)
        })
    }
}
