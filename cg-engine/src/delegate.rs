//! Delegation for engines that wrap another one, such as test engines that fail, watch or outlive it.

/// Implements the calls of [`Engine`](crate::Engine) or [`Readable`](crate::Readable) that an engine or a snapshot
/// delegates to the one in a field. Write `delegate! { field => sync usage }` inside the implementation, with both
/// traits in scope.
#[doc(hidden)]
#[macro_export]
macro_rules! delegate {
    ($engine:ident => $($call:ident)+) => { $($crate::delegate!(@$call $engine);)+ };
    (@get $engine:ident) => {
        fn get(
            &self,
            space: $crate::Space,
            key: &[u8],
        ) -> Result<Option<$crate::Value<'_>>, $crate::EngineError> {
            self.$engine.get(space, key)
        }
    };
    (@get_many $engine:ident) => {
        fn get_many(
            &self,
            keys: &[($crate::Space, &[u8])],
        ) -> Vec<Result<Option<$crate::Value<'_>>, $crate::EngineError>> {
            self.$engine.get_many(keys)
        }
    };
    (@get_slices $engine:ident) => {
        fn get_slices(
            &self,
            slices: &[$crate::RowSlice<'_>],
        ) -> Vec<Result<Option<$crate::Value<'_>>, $crate::EngineError>> {
            self.$engine.get_slices(slices)
        }
    };
    (@scan_rows $engine:ident) => {
        fn scan_rows(
            &self,
            scan: $crate::Scan<'_>,
            visit: &mut $crate::RowVisitor<'_>,
        ) -> Result<(), $crate::EngineError> {
            self.$engine.scan_rows(scan, visit)
        }
    };
    (@scan_ranges $engine:ident) => {
        fn scan_ranges(
            &self,
            family: $crate::Family,
            ranges: &[::std::ops::Range<Vec<u8>>],
            visit: &mut $crate::RowVisitor<'_>,
        ) -> Result<(), $crate::EngineError> {
            self.$engine.scan_ranges(family, ranges, visit)
        }

        fn ranges_at_once(&self, family: $crate::Family) -> usize {
            self.$engine.ranges_at_once(family)
        }
    };
    (@is_empty $engine:ident) => { $crate::delegate!(? $engine is_empty bool); };
    (@check_columns $engine:ident) => {
        fn check_columns(&self, visit: &mut $crate::ColumnsVisitor<'_>) -> Result<(), $crate::EngineError> {
            self.$engine.check_columns(visit)
        }
    };
    (@commit $engine:ident) => {
        fn commit(
            &self,
            batch: $crate::Batch,
            guards: &[$crate::Guard],
            level: $crate::Level,
        ) -> Result<$crate::CommitSeq, $crate::EngineError> {
            self.$engine.commit(batch, guards, level)
        }
    };
    (@load $engine:ident) => {
        fn load(&self, rows: Vec<$crate::SealedRow>) -> Result<(), $crate::EngineError> {
            self.$engine.load(rows)
        }
    };
    (@compact $engine:ident) => {
        fn compact(
            &self,
            family: $crate::Family,
            range: $crate::KeyRange<'_>,
        ) -> Result<(), $crate::EngineError> {
            self.$engine.compact(family, range)
        }

        fn compact_next(
            &self,
            family: $crate::Family,
            range: $crate::KeyRange<'_>,
        ) -> Result<Option<Box<[u8]>>, $crate::EngineError> {
            self.$engine.compact_next(family, range)
        }
    };
    (@checkpoint $engine:ident) => {
        fn checkpoint(&self, dir: &::std::path::Path) -> Result<(), $crate::EngineError> {
            self.$engine.checkpoint(dir)
        }
    };
    (@snapshot $engine:ident) => { $crate::delegate!(? $engine snapshot $crate::Snapshot<'_>); };
    (@sync $engine:ident) => { $crate::delegate!(? $engine sync ()); };
    (@flush $engine:ident) => { $crate::delegate!(? $engine flush ()); };
    (@close $engine:ident) => { $crate::delegate!(? $engine close ()); };
    (@usage $engine:ident) => { $crate::delegate!(? $engine usage $crate::Usage); };
    (@last_commit $engine:ident) => { $crate::delegate!(= $engine last_commit $crate::CommitSeq); };
    (@last_synced $engine:ident) => { $crate::delegate!(= $engine last_synced $crate::CommitSeq); };
    (@batch_count $engine:ident) => { $crate::delegate!(= $engine batch_count u64); };
    (@failure $engine:ident) => { $crate::delegate!(= $engine failure Option<$crate::Failure>); };
    (@free_bytes $engine:ident) => { $crate::delegate!(= $engine free_bytes Option<u64>); };
    (@disk_bytes $engine:ident) => { $crate::delegate!(= $engine disk_bytes Option<u64>); };
    (@address $engine:ident) => { $crate::delegate!(= $engine address String); };
    (@caps $engine:ident) => { $crate::delegate!(= $engine caps $crate::Caps); };
    (? $engine:ident $call:ident $value:ty) => {
        $crate::delegate!(= $engine $call Result<$value, $crate::EngineError>);
    };
    (= $engine:ident $call:ident $value:ty) => {
        fn $call(&self) -> $value {
            self.$engine.$call()
        }
    };
}
