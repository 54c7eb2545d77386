//! RocksDB's messages about its own work, as events of `tracing`.
//!
//! Without this, RocksDB writes them into a file beside the rows. At each open it begins another file with the options of
//! every family, and keeps the last two.

use rocksdb::{InfoLogger, LogLevel};
use tracing::Level;

/// The target of the events.
const TARGET: &str = "rocksdb";

/// A receiver of the messages: warnings, and the others if events of level `DEBUG` are wanted.
pub(super) fn receiver() -> InfoLogger {
    let level = if tracing::enabled!(target: TARGET, Level::DEBUG) { LogLevel::Info } else { LogLevel::Warn };
    InfoLogger::new_callback_logger(level, tell)
}

fn tell(level: LogLevel, message: &str) {
    let message = message.trim_end();
    match level {
        LogLevel::Warn | LogLevel::Error | LogLevel::Fatal => tracing::warn!(target: TARGET, "{message}"),
        // RocksDB lists its options at every level.
        LogLevel::Debug | LogLevel::Info | LogLevel::Header => tracing::debug!(target: TARGET, "{message}"),
    }
}
