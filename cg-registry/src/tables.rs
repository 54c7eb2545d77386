//! What every generation says of blocks and components, shared by the catalog and all of its schemas.

use crate::block::BlockHistory;
use crate::component::ComponentHistory;
use crate::shared::SharedVec;

/// What the schema views of all generations share.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tables {
    pub(crate) blocks: SharedVec<BlockHistory>,
    pub(crate) components: SharedVec<ComponentHistory>,
}
