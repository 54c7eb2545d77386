//! Engines over another, as tests make them to fail, watch or outlive it: what they pass on as it is.

/// Writes the calls of [`Engine`](crate::engine::Engine) or [`Readable`](crate::engine::Readable) that an engine or a
/// snapshot passes on to the one in a field: `pass_on! { field => sync usage }` inside the implementation, with both traits
/// in scope.
#[doc(hidden)]
#[macro_export]
macro_rules! pass_on {
    ($engine:ident => $($call:ident)+) => { $($crate::pass_on!(@$call $engine);)+ };
    (@get $engine:ident) => {
        fn get(
            &self,
            space: ::cg_format::Space,
            key: &[u8],
        ) -> Result<Option<$crate::engine::Value<'_>>, $crate::engine::EngineError> {
            self.$engine.get(space, key)
        }
    };
    (@get_many $engine:ident) => {
        fn get_many(
            &self,
            keys: &[(::cg_format::Space, &[u8])],
        ) -> Vec<Result<Option<$crate::engine::Value<'_>>, $crate::engine::EngineError>> {
            self.$engine.get_many(keys)
        }
    };
    (@scan_rows $engine:ident) => {
        fn scan_rows(
            &self,
            scan: $crate::engine::Scan<'_>,
            visit: &mut $crate::engine::RowVisitor<'_>,
        ) -> Result<(), $crate::engine::EngineError> {
            self.$engine.scan_rows(scan, visit)
        }
    };
    (@commit $engine:ident) => {
        fn commit(
            &self,
            batch: $crate::engine::Batch,
            guards: &[$crate::engine::Guard],
            level: $crate::engine::Level,
        ) -> Result<$crate::engine::CommitSeq, $crate::engine::EngineError> {
            self.$engine.commit(batch, guards, level)
        }
    };
    (@compact $engine:ident) => {
        fn compact(
            &self,
            family: ::cg_format::key::Family,
            range: $crate::engine::KeyRange<'_>,
        ) -> Result<(), $crate::engine::EngineError> {
            self.$engine.compact(family, range)
        }
    };
    (@checkpoint $engine:ident) => {
        fn checkpoint(&self, dir: &::std::path::Path) -> Result<(), $crate::engine::EngineError> {
            self.$engine.checkpoint(dir)
        }
    };
    (@snapshot $engine:ident) => { $crate::pass_on!(? $engine snapshot $crate::engine::Snapshot<'_>); };
    (@sync $engine:ident) => { $crate::pass_on!(? $engine sync ()); };
    (@flush $engine:ident) => { $crate::pass_on!(? $engine flush ()); };
    (@close $engine:ident) => { $crate::pass_on!(? $engine close ()); };
    (@usage $engine:ident) => { $crate::pass_on!(? $engine usage $crate::engine::Usage); };
    (@last_commit $engine:ident) => { $crate::pass_on!(= $engine last_commit $crate::engine::CommitSeq); };
    (@last_synced $engine:ident) => { $crate::pass_on!(= $engine last_synced $crate::engine::CommitSeq); };
    (@batch_count $engine:ident) => { $crate::pass_on!(= $engine batch_count u64); };
    (@failure $engine:ident) => { $crate::pass_on!(= $engine failure Option<$crate::engine::Failure>); };
    (@free_bytes $engine:ident) => { $crate::pass_on!(= $engine free_bytes Option<u64>); };
    (@disk_bytes $engine:ident) => { $crate::pass_on!(= $engine disk_bytes Option<u64>); };
    (@caps $engine:ident) => { $crate::pass_on!(= $engine caps $crate::engine::Caps); };
    (? $engine:ident $call:ident $value:ty) => {
        $crate::pass_on!(= $engine $call Result<$value, $crate::engine::EngineError>);
    };
    (= $engine:ident $call:ident $value:ty) => {
        fn $call(&self) -> $value {
            self.$engine.$call()
        }
    };
}
