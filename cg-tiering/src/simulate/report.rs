//! The counters of a simulation, as text.

use std::fmt;

/// The cost of a replayed trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// The moment of the last event.
    pub last_tick: u64,
    /// Loads of chunks, by their tier.
    pub loads: [u64; 3],
    /// Loads of absent chunks.
    pub absent_loads: u64,
    /// Keys read for loads: 1 for a hot chunk, up to 3 for a cold or an absent one.
    pub keys_read: u64,
    /// Cluster rows fetched for loads. Those that were in memory do not count.
    pub rows_fetched: u64,
    /// Cluster rows that loads found in memory.
    pub rows_cached: u64,
    /// Stored bytes fetched for loads.
    pub load_bytes: u64,
    /// Chunks saved.
    pub saves: u64,
    /// Stored bytes written by saves.
    pub save_bytes: u64,
    /// Chunks moved to each tier.
    pub moved: [u64; 3],
    /// Stored bytes read by moves and rewrites.
    pub move_read_bytes: u64,
    /// Stored bytes written by moves and rewrites.
    pub move_write_bytes: u64,
    /// Clusters rewritten or dropped because of shadowed slots.
    pub rewrites: u64,
    /// Planned steps that were no longer right when their turn came.
    pub outdated_steps: u64,
    /// Ticks whose budget ended before the work did.
    pub full_ticks: u64,
    /// Rows of heat written.
    pub heat_rows: u64,
    /// Boxes that were too large to be kept loaded.
    pub refused_holds: u64,
    /// Chunks whose live copies are in each tier at the end.
    pub chunks: [u64; 3],
    /// Rows of each tier at the end.
    pub rows: [u64; 3],
    /// Stored bytes of each tier at the end.
    pub bytes: [u64; 3],
    /// Slots of clusters that a hotter copy shadows at the end.
    pub shadowed_slots: u64,
}

impl Report {
    /// All loads of existing chunks.
    pub fn found_loads(&self) -> u64 {
        self.loads.iter().sum()
    }

    /// The share of loads of existing chunks that took one key read.
    pub fn hot_share(&self) -> f64 {
        ratio(self.loads[0], self.found_loads())
    }

    /// The share of loads of existing chunks from L0 or from a cluster in memory. Such a load fetches nothing, or one
    /// row of its own.
    pub fn cheap_share(&self) -> f64 {
        ratio(self.loads[0] + self.rows_cached, self.found_loads())
    }

    /// Keys read for each load.
    pub fn keys_per_load(&self) -> f64 {
        ratio(self.keys_read, self.found_loads() + self.absent_loads)
    }

    /// Stored bytes written for each saved byte; `None` if nothing was saved.
    pub fn write_amplification(&self) -> Option<f64> {
        (self.save_bytes > 0).then(|| ratio(self.save_bytes + self.move_write_bytes, self.save_bytes))
    }

    /// Bytes written by moves for each byte that loads fetched.
    pub fn written_per_loaded(&self) -> f64 {
        ratio(self.move_write_bytes, self.load_bytes)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [hot, warm, cold] = self.loads;
        writeln!(f, "game time     {} ticks", self.last_tick)?;
        writeln!(f, "loads         {hot} hot, {warm} warm, {cold} cold, {} absent", self.absent_loads)?;
        writeln!(
            f,
            "              {:.1} % with one read, {:.2} keys each, {} rows fetched, {} found in memory, {}",
            self.hot_share() * 100.0,
            self.keys_per_load(),
            self.rows_fetched,
            self.rows_cached,
            Bytes(self.load_bytes)
        )?;
        writeln!(f, "saves         {}, {}", self.saves, Bytes(self.save_bytes))?;
        let [up, to_warm, to_cold] = self.moved;
        writeln!(f, "moved         {up} chunks to L0, {to_warm} to L1, {to_cold} to L2")?;
        write!(
            f,
            "              {} read, {} written, {:.1} % of what loads read",
            Bytes(self.move_read_bytes),
            Bytes(self.move_write_bytes),
            self.written_per_loaded() * 100.0
        )?;
        match self.write_amplification() {
            Some(times) => writeln!(f, ", write amplification {times:.2}")?,
            None => writeln!(f)?,
        }
        writeln!(
            f,
            "              {} clusters rewritten, {} steps outdated, {} ticks full, {} heat rows",
            self.rewrites, self.outdated_steps, self.full_ticks, self.heat_rows
        )?;
        for tier in 0..3 {
            writeln!(
                f,
                "L{tier}            {} chunks in {} rows, {}",
                self.chunks[tier],
                self.rows[tier],
                Bytes(self.bytes[tier])
            )?;
        }
        writeln!(f, "shadowed      {} slots", self.shadowed_slots)
    }
}

/// Reports of several settings, as a table with a line for each.
///
/// ```
/// use cg_tiering::simulate::{Comparison, Report};
/// let table = Comparison(vec![("default".to_owned(), Report::default())]).to_string();
/// assert!(table.starts_with("setting"));
/// assert_eq!(table.lines().count(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comparison(pub Vec<(String, Report)>);

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(7);
        writeln!(
            f,
            "{:width$}  one read  keys/load      loaded  moves wrote  amplification      L0      L1      L2",
            "setting"
        )?;
        for (name, report) in &self.0 {
            let [hot, warm, cold] = report.chunks;
            let amplification =
                report.write_amplification().map_or_else(|| "-".to_owned(), |times| format!("{times:.2}"));
            writeln!(
                f,
                "{name:width$}  {:6.1} %  {:9.2}  {:>10}  {:>11}  {amplification:>13}  {hot:6}  {warm:6}  {cold:6}",
                report.hot_share() * 100.0,
                report.keys_per_load(),
                Bytes(report.load_bytes).to_string(),
                Bytes(report.move_write_bytes).to_string(),
            )?;
        }
        Ok(())
    }
}

/// A number of bytes with a readable unit.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            0..10_000 => write!(f, "{} B", self.0),
            10_000..10_000_000 => write!(f, "{:.1} KiB", bytes / 1024.0),
            10_000_000..10_000_000_000 => write!(f, "{:.1} MiB", bytes / f64::from(1 << 20)),
            _ => write!(f, "{:.1} GiB", bytes / f64::from(1 << 30)),
        }
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
