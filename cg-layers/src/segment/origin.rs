//! Origins of what segments have.

use cg_format::overlay::Origin;
use cg_store::World;
use cg_store::layer::Found;

/// Makes versions of earlier drafts distinct between the lives of a segment. A segment that was deleted and created again, or
/// restored from a checkpoint, counts versions anew. Versions that have an opening are distinct by that. The results are only
/// compared for equality.
pub(super) fn of_life<T>(world: &World, found: Found<T>) -> Found<T> {
    found.map(|(value, origin)| {
        if origin.opening != 0 {
            return (value, origin);
        }
        let (high, low) = world.identity().incarnation.as_u64_pair();
        (value, Origin { version: origin.version ^ high ^ low, ..origin })
    })
}
