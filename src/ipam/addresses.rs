//! The addresses of one subnet.

use std::net::IpAddr;

use roaring::RoaringBitmap;

use crate::{Error, Subnet};

/// Allocates the addresses of one subnet. Freed addresses are reused last: traffic for the pod that had one
/// may still be on its way.
#[derive(Debug, Clone)]
pub struct AddressPool {
    subnet: Subnet,
    /// Offsets from the network address.
    used: RoaringBitmap,
    reserved: u32,
    last: u32,
    cursor: u32,
}

impl AddressPool {
    /// A pool over `subnet` whose first `reserved` addresses (the network address among them) are
    /// never given out or taken. IPv4 broadcast addresses are left out too, and of larger IPv6
    /// subnets only the first 2³² − 1 addresses are used.
    pub fn new(subnet: Subnet, reserved: u32) -> Self {
        let size = 1u128.checked_shl(u32::from(subnet.host_bits())).unwrap_or(u128::MAX);
        let end = if subnet.is_ipv6() { size } else { size.saturating_sub(1) };
        let last = u32::try_from(end.saturating_sub(1)).unwrap_or(u32::MAX - 1);
        let mut used = RoaringBitmap::new();
        used.insert_range(0..reserved.min(last.saturating_add(1)));
        Self { subnet, used, reserved, last, cursor: reserved }
    }

    pub fn subnet(&self) -> Subnet {
        self.subnet
    }

    /// How many addresses are free.
    pub fn free_count(&self) -> u64 {
        (u64::from(self.last) + 1).saturating_sub(self.used.len())
    }

    /// Marks an address that is already in use.
    pub fn take(&mut self, ip: IpAddr) -> Result<(), Error> {
        let offset = self.offset(ip)?;
        if self.used.insert(offset) { Ok(()) } else { Err(Error::Taken { what: ip.to_string() }) }
    }

    /// Takes a free address and returns it: the first one after the one that was allocated last.
    pub fn allocate(&mut self) -> Result<IpAddr, Error> {
        if self.free_count() == 0 {
            return Err(self.exhausted());
        }
        let offset = self.free_from(self.cursor).or_else(|| self.free_from(0)).ok_or_else(|| self.exhausted())?;
        let ip = self.subnet.nth(u128::from(offset)).ok_or_else(|| self.exhausted())?;
        self.used.insert(offset);
        self.cursor = offset.saturating_add(1);
        Ok(ip)
    }

    /// Frees an address. One that is free already, reserved or outside of the subnet is ignored.
    pub fn free(&mut self, ip: IpAddr) {
        if let Ok(offset) = self.offset(ip)
            && offset >= self.reserved
        {
            self.used.remove(offset);
        }
    }

    fn free_from(&self, start: u32) -> Option<u32> {
        (start..=self.last).find(|offset| !self.used.contains(*offset))
    }

    fn offset(&self, ip: IpAddr) -> Result<u32, Error> {
        self.subnet
            .offset(ip)
            .and_then(|offset| u32::try_from(offset).ok())
            .filter(|offset| *offset <= self.last)
            .ok_or_else(|| Error::Outside { what: ip.to_string(), range: self.subnet.to_string() })
    }

    fn exhausted(&self) -> Error {
        Error::Exhausted { what: "address", range: self.subnet.to_string() }
    }
}
