//! Tables and columns, written from `../schema`.

#[rustfmt::skip]
pub mod ic_nb;
#[rustfmt::skip]
pub mod ic_sb;
#[rustfmt::skip]
pub mod nb;
#[rustfmt::skip]
pub mod sb;
#[rustfmt::skip]
pub mod vswitch;
