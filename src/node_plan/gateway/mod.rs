//! The node's gateway: its bridge, and the wanted state of host, nftables and OpenFlow.

pub mod flows;
mod inside;
pub mod nft;
pub mod place;
pub mod ranges;
pub mod routing;
pub mod settings;
#[cfg(test)]
mod tests;

pub use place::{GatewayBridge, Place, Refused, ReservedRanges};
pub use settings::GatewaySettings;
