//! Writes the nftables table and remembers what it has written.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use ovnkube_host::nft;
use ovnkube_node_plan::gateway::nft::{TABLE, Wanted};
use ovnkube_node_plan::services::element::Element;
use ovnkube_node_plan::services::nft::{Elements, Moved, UdpFrontend, change as change_of, led, turned};

use crate::Result;

/// The table as written and as the kernel shows it.
#[derive(Debug, Default)]
pub(super) struct Table {
    written: Option<(Wanted, String)>,
    /// The kernel has the table, perhaps not as wanted.
    is_there: bool,
    refused: Vec<Refused>,
    /// Frontends whose translation has changed or is about to change.
    turned: BTreeSet<UdpFrontend>,
}

/// An element that the kernel refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) element: Element,
    value: Option<SocketAddr>,
    pub(super) why: String,
}

/// If the kernel refuses more elements, the elements are not the cause.
const MOST_REFUSED: usize = 32;

impl Table {
    /// Writes the elements that differ, or the whole table unless it is as this process left it. Returns the UDP
    /// frontends whose translation changed since [`Table::forget_turned`], and where they lead now. A refused element
    /// blocks no other.
    pub(super) async fn ensure(&mut self, mut want: Wanted) -> Result<Moved> {
        self.is_there = false;
        let shown = nft::list(TABLE).await?;
        self.is_there = shown.is_some();
        let written = self.written.take();
        let as_left = |(have, left): &(Wanted, String)| shown.as_ref() == Some(left) && have.body == want.body;
        let is_left = written.as_ref().is_some_and(as_left);
        // a refused element stays out until it differs or the whole table is written
        let elements = &mut want.elements;
        let mut refused = self.refused.clone();
        refused.retain(|refused| elements.get(&refused.element) == Some(&refused.value) && is_left);
        for refused in &refused {
            elements.remove(&refused.element);
        }
        let none = Elements::new();
        // remembered even if something fails from here on
        let before = written.as_ref().map_or(&none, |(have, _)| &have.elements);
        self.turned.extend(turned(before, &want.elements));
        if !is_left {
            self.turned.extend(turned(&none, &want.elements));
        }
        let left = written.filter(|_| is_left);
        let have = left.as_ref().map_or(&none, |(have, _)| &have.elements);
        let commands = |elements: &Elements| {
            let replacement = left.is_none().then(|| nft::replacement(TABLE, &want.body));
            replacement.unwrap_or_default() + &change_of(TABLE, have, elements)
        };
        let generation = nft::generation().await?;
        let mut change = commands(&want.elements);
        if change.is_empty() {
            (self.written, self.refused) = (left, refused);
            return Ok(led(&self.turned, &want.elements));
        }
        if let Err(e) = nft::change(TABLE, &change).await {
            if !nft::is_refusal(&e) {
                return Err(e.into());
            }
            let new = isolate(have, &want.elements, &commands).await?;
            if new.is_empty() {
                return Err(e.into());
            }
            for refused in &new {
                want.elements.remove(&refused.element);
            }
            refused.extend(new);
            change = commands(&want.elements);
            nft::change(TABLE, &change).await?;
        }
        (self.is_there, self.refused) = (true, refused);
        let moved = led(&self.turned, &want.elements);
        // changes that another program made meanwhile must not count as ours
        let shown = nft::list(TABLE).await?;
        let ours = nft::generation().await? == generation.wrapping_add(1);
        self.written = shown.filter(|_| ours).map(|shown| (want, shown));
        Ok(moved)
    }

    /// Forgets the changed frontends: their old connections have been ended.
    pub(super) fn forget_turned(&mut self) {
        self.turned.clear();
    }

    /// Whether the kernel had the table at the last look, perhaps not as wanted.
    pub(super) fn is_there(&self) -> bool {
        self.is_there
    }

    /// The elements that the kernel refused when the table could be written last.
    pub(super) fn refused(&self) -> &[Refused] {
        &self.refused
    }
}

/// Finds the new elements that the kernel refuses, by bisection. Writes nothing.
async fn isolate(have: &Elements, want: &Elements, commands: &impl Fn(&Elements) -> String) -> Result<Vec<Refused>> {
    let all = want.iter().map(|(element, value)| (*element, *value));
    let (good, new): (Vec<_>, Vec<_>) = all.partition(|(element, value)| have.get(element) == Some(value));
    let mut good = Elements::from_iter(good);
    let mut refused = Vec::new();
    let mut batches = vec![new];
    while let Some(mut batch) = batches.pop() {
        let mut candidate = good.clone();
        candidate.extend(batch.iter().copied());
        match nft::check(TABLE, &commands(&candidate)).await? {
            Ok(()) => good = candidate,
            Err(_) if batch.len() > 1 => {
                let rest = batch.split_off(batch.len() / 2);
                batches.extend([rest, batch]);
            }
            Err(why) => {
                let of = |(element, value)| Refused { element, value, why: why.clone() };
                refused.extend(batch.into_iter().map(of));
                if refused.len() > MOST_REFUSED {
                    return Ok(Vec::new());
                }
            }
        }
    }
    Ok(refused)
}
