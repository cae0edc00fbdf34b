//! Names of the files with the network configuration, in the runtime's directory.

/// Runtimes recognize a list by its extension, and read `cniVersions` only in lists.
pub const FILE: &str = "10-ovn-kubernetes.conflist";
/// Written by earlier releases and by ovn-kubernetes. It sorts first, so runtimes would use it.
pub const OLD: &str = "10-ovn-kubernetes.conf";
