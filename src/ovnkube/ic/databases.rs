//! The databases of an interconnection.

use ovnkube_apply::{Chassis, seconds};
use ovnkube_config::Settings;
use ovnkube_interconnect::Databases;
use ovnkube_interconnect::report::{Contents, Looked, Reached};
use ovnkube_model::{Interconnection, World};
use ovnkube_ovn::nb::{
    self, logical_router as lr, logical_router_policy as policy, logical_router_port as lrp,
    logical_router_static_route as route, logical_switch as ls,
};
use ovnkube_ovn::{ic_nb, ic_sb};
use ovnkube_ovsdb::{CacheGuard, Client, Monitored, Options};

use super::servers::remotes;
use crate::{controller, remove, translate};

/// Those that were reached, and why the others were not.
pub(super) struct Opened {
    pub(super) ic_nb: Looked<Client>,
    pub(super) ic_sb: Looked<Client>,
    pub(super) nb: Looked<Client>,
    pub(super) sb: Looked<Client>,
}

/// The shared ones only.
pub(super) async fn shared(settings: &Settings, names: &Interconnection) -> (Looked<Client>, Looked<Client>) {
    let connect = |database, port| {
        Client::connect(Options {
            tls: translate::tls(&settings.nb),
            txn_timeout: settings.default.db_txn_timeout,
            ..Options::new(database, remotes(&names.servers, port))
        })
    };
    tokio::join!(
        remove::open(connect(&ic_nb::DATABASE, names.nb_port), "northbound interconnection"),
        remove::open(connect(&ic_sb::DATABASE, names.sb_port), "southbound interconnection"),
    )
}

/// This cluster's own: the northbound and the southbound one.
pub(super) async fn own(settings: &Settings) -> [Looked<Client>; 2] {
    let sb = controller::southbound(settings);
    Chassis::watch_ports(&sb, true);
    tokio::join!(remove::open(northbound(settings), "northbound"), remove::open(sb, "southbound")).into()
}

impl Opened {
    /// `names`: where the shared ones are, or why that is not known.
    pub(super) async fn open(settings: &Settings, own: [Looked<Client>; 2], names: Looked<&Interconnection>) -> Self {
        let (north, south) = match names {
            Ok(names) => shared(settings, names).await,
            Err(why) => (Err(why.clone()), Err(why)),
        };
        let [nb, sb] = own;
        Self { ic_nb: north, ic_sb: south, nb, sb }
    }

    /// What they hold now. `world` learns what the other clusters have.
    pub(super) fn contents(&self, world: &mut World) -> Contents {
        fn guard(client: &Looked<Client>) -> Looked<CacheGuard<'_>> {
            client.as_ref().map(Client::cache).map_err(Clone::clone)
        }
        let guards = [guard(&self.ic_nb), guard(&self.ic_sb), guard(&self.nb), guard(&self.sb)];
        let [north, south, nb, sb] =
            guards.each_ref().map(|guard| guard.as_ref().map(|guard| &**guard).map_err(Clone::clone));
        Contents::read(world, &Reached { ic_nb: north, ic_sb: south, nb, sb }, seconds())
    }

    pub(super) fn all(&self) -> Looked<All<'_>> {
        let of = |client: &'_ Looked<Client>| client.as_ref().map(|_| ()).map_err(Clone::clone);
        [&self.ic_nb, &self.ic_sb, &self.nb, &self.sb].into_iter().try_for_each(of)?;
        match (&self.ic_nb, &self.ic_sb, &self.nb, &self.sb) {
            (Ok(north), Ok(south), Ok(nb), Ok(sb)) => Ok(All { ic_nb: north, ic_sb: south, nb, sb }),
            _ => Err("not all databases can be reached".to_owned()),
        }
    }
}

/// All databases.
#[derive(Clone, Copy)]
pub(super) struct All<'a> {
    pub(super) ic_nb: &'a Client,
    pub(super) ic_sb: &'a Client,
    pub(super) nb: &'a Client,
    pub(super) sb: &'a Client,
}

impl All<'_> {
    pub(super) fn with<T>(&self, work: impl FnOnce(Databases<'_>) -> T) -> T {
        let (north, south, sb) = (self.ic_nb.cache(), self.ic_sb.cache(), self.sb.cache());
        work(Databases { ic_nb: &north, ic_sb: &south, sb: &sb })
    }
}

/// Only what an interconnection has there: not the ports of all pods.
fn northbound(settings: &Settings) -> Client {
    let tables = vec![
        Monitored::only(lr::TABLE, [lr::NAME.id(), lr::EXTERNAL_IDS.id()]),
        Monitored::only(lrp::TABLE, [lrp::NAME.id(), lrp::NETWORKS.id(), lrp::EXTERNAL_IDS.id()]),
        Monitored::only(route::TABLE, [route::IP_PREFIX.id(), route::NEXTHOP.id(), route::EXTERNAL_IDS.id()]),
        Monitored::only(policy::TABLE, [policy::EXTERNAL_IDS.id()]),
        Monitored::only(ls::TABLE, [ls::NAME.id(), ls::OTHER_CONFIG.id(), ls::EXTERNAL_IDS.id()]),
    ];
    Client::connect(Options {
        tls: translate::tls(&settings.nb),
        identity: ovnkube_plan::identity,
        txn_timeout: settings.default.db_txn_timeout,
        tables,
        ..Options::new(&nb::DATABASE, translate::remotes(&settings.nb))
    })
}
