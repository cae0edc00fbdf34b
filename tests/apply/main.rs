//! The engine and its parts on real servers.
