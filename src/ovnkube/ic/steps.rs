//! `reset` and `clean`: what they remove, once it hurts nobody else.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use ovnkube_apply::seconds;
use ovnkube_config::{Left as Named, Settings};
use ovnkube_interconnect::{
    Cleaning, Left, answered, clean as cleaning, forget, local, may_reset, names as clusters, question, withdraw,
};
use ovnkube_ovsdb::{Client, Txn};
use ovnkube_plan::{Offer, offer};
use tokio::time::{Instant, sleep, timeout};

use super::databases::{All, Opened, shared};
use super::first::First;
use super::kubernetes::Kubernetes;
use super::look::locked;
use crate::db::{Failed, print};
use crate::remove;

/// A cluster that is alive answers within this time, also while another of its masters takes over.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);
/// A master at work makes everything anew within this time.
const ANEW_WITHIN: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How often a question is sent if other programs ask at the same time.
const TRIES: usize = 5;

fn refused(why: impl Into<String>) -> Failed {
    Failed::Refused(why.into())
}

/// Removes all that this cluster has. Returns what was done.
pub(super) async fn reset(settings: &Settings) -> Result<String, Failed> {
    let cannot = |why: String| anyhow!("cannot reset: {why}");
    let First { mut kubernetes, own, names, is_on, said } = First::read(settings).await;
    // without it, it is not known whether a master would make anything anew
    kubernetes.asked.as_ref().map_err(Clone::clone).map_err(cannot)?;
    let wanted = names.map_err(cannot)?;
    said.iter().try_for_each(|said| print(said))?;
    let opened = Opened::open(settings, own, Ok(&wanted)).await;
    let all = opened.all().map_err(|why| refused(format!("{why}; nothing is removed")))?;
    let offer = offered(&kubernetes)?;
    all.with(|databases| may_reset(&offer, databases)).map_err(refused)?;
    if is_on && locked(&opened.sb).await != Ok(true) {
        return Err(refused(
            "no master keeps the interconnection, so nothing would make it anew; start one, or set enable-ic: \"false\" in the ConfigMap \
             ovn-ic-config to have it removed only",
        ));
    }
    let zone = &offer.wanted.zone;
    let had_gateway = opened.contents(&mut kubernetes.world).has_gateway(zone);
    let removed = remove_all(&all, &offer).await;
    removed.map_err(|why| anyhow!("cannot remove all of it: {why}; run this again"))?;
    if !is_on {
        return Ok("removed".to_owned());
    }
    let began = Instant::now();
    while !opened.contents(&mut kubernetes.world).is_whole(zone, had_gateway) {
        if began.elapsed() > ANEW_WITHIN {
            let within = ANEW_WITHIN.as_secs();
            return Err(
                anyhow!("not all is made anew within {within} s; ovnkube ic diagnose tells what is missing").into()
            );
        }
        sleep(LOOK_AGAIN).await;
    }
    Ok(format!("the master has made it anew within {:.1} s", began.elapsed().as_secs_f32()))
}

fn offered(kubernetes: &Kubernetes) -> Result<Offer, Failed> {
    let why = "cannot find out which rows are this cluster's: the namespace kube-system cannot be read; give an account that may read it";
    Ok(offer(&kubernetes.world).context(why)?)
}

/// The shared databases first: what is still here when this is interrupted leads nobody here.
async fn remove_all(all: &All<'_>, offer: &Offer) -> Result<(), String> {
    let shared = || all.with(|databases| withdraw(offer, databases, true));
    let here = || local(&all.nb.cache());
    let chassis = || forget(&all.sb.cache());
    let say = |text: String| print(&text).map_err(|error| error.to_string());
    say(format!(
        "removes from the southbound interconnection database: {} rows of {}",
        shared().len(),
        offer.wanted.zone
    ))?;
    say(format!("removes from the northbound database: {}", here().1))?;
    say(format!("removes from the southbound database: {} chassis of other clusters", chassis().len()))?;
    write(all.ic_sb, &shared, "southbound interconnection").await?;
    write(all.nb, &|| here().0, "northbound").await?;
    write(all.sb, &chassis, "southbound").await
}

async fn write(client: &Client, plan: &dyn Fn() -> Txn, name: &str) -> Result<(), String> {
    remove::write(client, plan).await.map_err(|why| format!("the {name} database: {why}"))
}

/// Removes what is left of a cluster or a gateway that is gone. Returns what was done.
pub(super) async fn clean(settings: &Settings, named: &Named, force: bool) -> Result<String, Failed> {
    let left = match named {
        Named::Zone(name) => Left::Zone(name),
        Named::Gateway(name) => Left::Gateway(name),
    };
    let cannot = |why: String| anyhow!("cannot clean: {why}");
    let First { kubernetes, own: [nb, _], names, said, .. } = First::read(settings).await;
    let wanted = names.map_err(cannot)?;
    let offer = offered(&kubernetes)?;
    said.iter().try_for_each(|said| print(said))?;
    let (north, south) = shared(settings, &wanted).await;
    let south = south.map_err(cannot)?;
    let find = || cleaning(&south.cache(), left, &offer).map_err(refused);
    let Some(found) = find()? else { return Ok(nothing(&south, left)) };
    if !force {
        if let (true, Err(why)) = (found.has_our_mark, &nb) {
            return Err(refused(format!(
                "cluster {} has the mark of this one, and the northbound database, which knows the names that this one had, cannot be read: \
                 {why}; run this again when it can, or if you are sure that these rows are not needed, add --force",
                found.zone
            )));
        }
        let north = north.map_err(|why| refused(format!("{why}; so {}", unasked(&found))))?;
        is_dead(&north, &south, &found, left).await?;
    }
    // what it has may have changed meanwhile
    let plan = || match cleaning(&south.cache(), left, &offer) {
        Ok(Some(found)) => found.txn,
        _ => Txn::new(&ovnkube_ovn::ic_sb::DATABASE),
    };
    write(&south, &plan, "southbound interconnection").await.map_err(cannot)?;
    Ok(format!("removed of cluster {}: {}", found.zone, found.rows))
}

fn nothing(south: &Client, left: Left<'_>) -> String {
    let all = clusters(&south.cache()).join(", ");
    match left {
        Left::Zone(name) => format!("there is no cluster {name:?}; there are: {all}"),
        Left::Gateway(name) => format!("no cluster has a gateway {name:?}; ovnkube ic status lists them"),
    }
}

fn unasked(found: &Cleaning) -> String {
    format!("it is not known whether cluster {} is alive; if you are sure that it is gone, add --force", found.zone)
}

/// Asks all clusters to answer. Refuses if this one does, or has answered nobody yet.
async fn is_dead(north: &Client, south: &Client, found: &Cleaning, left: Left<'_>) -> Result<(), Failed> {
    let before = answered(&south.cache(), found.zone_id);
    if !asked(north, south).await? {
        let why = "the shared databases are too old to ask clusters whether they are alive";
        return Err(refused(format!("{why}; {}", unasked(found))));
    }
    // OVN's own daemon counts up to the number
    let answer = async {
        while answered(&south.cache(), found.zone_id) == before {
            sleep(LOOK_AGAIN).await;
        }
    };
    let zone = &found.zone;
    if timeout(ANSWER_WITHIN, answer).await.is_ok() {
        return Err(refused(match left {
            Left::Zone(_) => format!(
                "cluster {zone} is alive: it answers. Have it leave, by its own ConfigMap; --force removes what it has all the same, and it \
                 joins again"
            ),
            Left::Gateway(_) => format!(
                "cluster {zone} is alive: it answers. Take the node out of gw-nodes in its own ConfigMap; --force removes the gateway all the \
                 same, and it comes back"
            ),
        }));
    }
    if before == 0 && !found.is_ovnkube {
        let within = ANSWER_WITHIN.as_secs();
        return Err(refused(format!(
            "cluster {zone} does not answer within {within} s, but it never has: its OVN may be too old to; {}",
            unasked(found)
        )));
    }
    Ok(())
}

/// Sends the question. `false`: the databases are too old for it.
async fn asked(north: &Client, south: &Client) -> Result<bool, Failed> {
    let mut why = String::new();
    for _ in 0..TRIES {
        let Some(txn) = question(&north.cache(), &south.cache(), seconds()) else { return Ok(false) };
        match north.transact(txn).await {
            Ok(_) => return Ok(true),
            Err(error) => why = error.to_string(),
        }
        sleep(LOOK_AGAIN).await;
    }
    Err(anyhow!("cannot ask the other clusters whether they are alive: {why}; run this again").into())
}
