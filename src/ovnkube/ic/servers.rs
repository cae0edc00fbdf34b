//! Tells people which servers of the shared databases are not as they should be, also while the others serve: the master that keeps the
//! interconnection asks each of them from time to time.

use std::future::pending;
use std::time::Duration;

use ovnkube_apply::Lasting;
use ovnkube_config::Settings;
use ovnkube_db::Observed;
use ovnkube_interconnect::report::judge;
use ovnkube_model::{Change, Interconnection, Name, Server, Stuck};
use ovnkube_ovn::{ic_nb, ic_sb};
use ovnkube_ovsdb::Remote;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::db::look::servers;
use crate::translate;

/// How often they are asked.
const AGAIN: Duration = Duration::from_secs(60);
/// When they are asked first, and again where something is wrong: one that is restarted is there by then.
const SOON: Duration = Duration::from_secs(10);

/// Runs while this master leads. `place`: where the cluster is joined with others.
pub(crate) async fn keep(
    settings: &Settings,
    mut place: watch::Receiver<Option<Interconnection>>,
    changes: mpsc::WeakSender<Change>,
) {
    let (mut lasting, mut wait) = (Lasting::default(), SOON);
    loop {
        match timeout(wait, place.changed()).await {
            // the engine forgets what it knew of the former ones
            Ok(Ok(())) => (lasting, wait) = (Lasting::default(), SOON),
            Ok(Err(_)) => return pending().await,
            Err(_) => {
                let Some(place) = place.borrow().clone() else { continue };
                let problem = problem(settings, &place).await;
                let due = lasting.note(Stuck::Servers, (problem, SOON), &changes).await;
                wait = if due.is_some() { SOON } else { AGAIN };
            }
        }
    }
}

async fn problem(settings: &Settings, place: &Interconnection) -> Option<Name> {
    let observed = shared_servers(settings, place).await;
    let say = |observed| {
        let (seen, remedy) = judge(observed).err()?;
        Some(format!("{}: {seen}; {remedy}", observed.database))
    };
    let all: Vec<String> = observed.iter().filter_map(say).collect();
    (!all.is_empty()).then(|| all.join(". ").into())
}

/// What the servers of the shared databases say.
pub(super) async fn shared_servers(settings: &Settings, names: &Interconnection) -> [Observed; 2] {
    let tls = translate::tls(&settings.nb);
    let (north, south) = (remotes(&names.servers, names.nb_port), remotes(&names.servers, names.sb_port));
    tokio::join!(servers(&north, tls.as_ref(), &ic_nb::DATABASE), servers(&south, tls.as_ref(), &ic_sb::DATABASE))
        .into()
}

pub(super) fn remotes(servers: &[Server], port: u16) -> Vec<Remote> {
    let texts = servers.iter().map(|server| server.remote(port));
    texts.filter_map(|text| Remote::parse(&text).ok()).collect()
}
