//! Opening a directory again, after its engine failed and was dropped.

use std::path::Path;
use std::sync::Arc;

use super::super::{Engine as _, EngineError, Expects, Found, Reopened};
use super::held::Held;
use super::lock::DirLock;
use super::open::{examine, open_to_read};
use super::{Access, RocksOptions};

/// Opens a directory again, with families that were held before, under the writer's lock of the engine before. For
/// writing if its newest commit is expected, else for reading.
pub(super) fn reopen(
    dir: &Path,
    options: &RocksOptions,
    held: &Held,
    lock: Option<&Arc<DirLock>>,
    expects: &Expects<'_>,
) -> Result<Reopened, EngineError> {
    let mut lock = lock.filter(|lock| lock.is_of(dir)).cloned();
    let refused = match examine(dir, options, held, lock.as_ref()) {
        Ok(examined) => {
            let rows = examined.reader();
            match expects(&Found { last_commit: rows.last_commit(), rows }) {
                Ok(true) => match examined.open() {
                    Ok(engine) => return Ok(Reopened::Writable(Box::new(engine))),
                    Err(error) => Some(error),
                },
                Err(error) if error.fence().is_some() => return Err(error),
                unexpected => {
                    // It may have been taken anew. A second one of this process would be refused.
                    lock = examined.lock;
                    unexpected.err()
                }
            }
        }
        Err(error) => Some(error),
    };
    let reading = options.clone().with_access(Access::ReadOnly);
    match (open_to_read(dir, &reading, lock.as_ref()), refused) {
        (Ok(engine), None) => Ok(Reopened::Unexpected(Box::new(engine))),
        (Ok(engine), Some(cause)) => Ok(Reopened::Reader { engine: Box::new(engine), cause }),
        (Err(_), Some(cause)) | (Err(cause), None) => Err(cause),
    }
}
