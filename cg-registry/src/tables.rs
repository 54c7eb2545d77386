//! The states of blocks and components in all generations. The catalog and all its schemas share them.

use crate::block::BlockHistory;
use crate::component::ComponentHistory;
use crate::shared::SharedVec;

/// The data that the schema views of all generations share.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tables {
    pub(crate) blocks: SharedVec<BlockHistory>,
    pub(crate) components: SharedVec<ComponentHistory>,
}
