//! Who owns a row: the ids that mark rows as ours, and the names made from them.

use std::collections::BTreeMap;

use uuid::Uuid;

/// The controller of the cluster's default network.
pub const DEFAULT_NETWORK: &str = "default-network-controller";
/// External id that carries [`OwnerId::id`].
pub const ID: &str = "k8s.ovn.org/id";
/// External id that carries the owner's name.
pub const NAME: &str = "k8s.ovn.org/name";
/// External id that carries the controller.
pub const OWNER_CONTROLLER: &str = "k8s.ovn.org/owner-controller";
/// External id that carries the owner type.
pub const OWNER_TYPE: &str = "k8s.ovn.org/owner-type";

/// Owner type of rows of gateways: in tables where ovn-kubernetes marks nothing, so that it has no name for it.
pub const GATEWAY: &str = "Gateway";

/// Owner type of rows of interconnection with other clusters.
pub const INTERCONNECTION: &str = "Interconnection";

/// External ids that say only that a row is the default network's, and its type. They have neither [`NAME`] nor a plain
/// `name`: by these ovn-kubernetes recognizes rows of its egress addresses, also among foreign NAT rules.
pub fn marks(owner_type: &'static str) -> [(&'static str, &'static str); 2] {
    [(OWNER_CONTROLLER, DEFAULT_NETWORK), (OWNER_TYPE, owner_type)]
}

/// Namespace of the uuids that long names are.
const LONG_NAMES: Uuid = Uuid::from_u128(0x1d0f_3c7b_94a2_4e6d_b58c_7a31_e2f6_0d95);

/// Token in `ovn-cms-options` of a chassis that is a node of the cluster: ovn-controller copies it from the host's
/// settings to the row of the chassis, also when it creates that row again.
pub const NODE_CHASSIS: &str = "ovnkube-node";

/// Identity of a row: controller, owner type, then key values in the type's own order.
///
/// ```
/// use ovnkube_ovn::OwnerId;
/// let set = OwnerId::new("Namespace").name("a").key("ip-family", "v4");
/// assert_eq!(set.id(), "default-network-controller:Namespace:a:v4");
/// assert_eq!(set.hashed_name(), "a4702457242462544204");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerId {
    id: String,
    external_ids: BTreeMap<&'static str, String>,
    has_long_name: bool,
}

impl OwnerId {
    /// An owner of the default network.
    pub fn new(owner_type: &str) -> Self {
        Self::of(DEFAULT_NETWORK, owner_type)
    }

    /// An owner of another controller, such as `udn-enabled-svc`.
    pub fn of(controller: &str, owner_type: &str) -> Self {
        let marks = [(OWNER_CONTROLLER, controller.to_owned()), (OWNER_TYPE, owner_type.to_owned())];
        OwnerId { id: format!("{controller}:{owner_type}"), external_ids: marks.into(), has_long_name: false }
    }

    /// Adds the owner's name as the next key.
    pub fn name(self, name: &str) -> Self {
        self.key(NAME, name)
    }

    /// Adds the next key.
    pub fn key(mut self, key: &'static str, value: &str) -> Self {
        self.id.push(':');
        self.id.push_str(value);
        self.external_ids.insert(key, value.to_owned());
        self
    }

    /// `controller:type:key:key…`
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Name of the address set or port group with this id: `a` and the decimal FNV-1a-64 of the id, which OVN's expressions accept
    /// whatever the id contains; or a long one.
    pub fn hashed_name(&self) -> String {
        if self.has_long_name {
            format!("a{}", Uuid::new_v5(&LONG_NAMES, self.id.as_bytes()).simple())
        } else {
            name_of(self.hash())
        }
    }

    /// What the usual name is made of.
    pub fn hash(&self) -> u64 {
        fnv1a(&self.id)
    }

    /// The same with a name that nobody can choose: `a` and 128 bits of the id's SHA-1. It is for one whose usual name is another's.
    pub fn with_long_name(mut self) -> Self {
        self.has_long_name = true;
        self
    }

    /// The external ids that mark the row.
    pub fn external_ids(&self) -> BTreeMap<&'static str, String> {
        let mut ids = self.external_ids.clone();
        ids.insert(ID, self.id.clone());
        ids
    }
}

/// The usual name of an owner whose id has this hash.
pub fn name_of(hash: u64) -> String {
    format!("a{hash}")
}

/// FNV-1a with 64 bits. It is no defence: within a minute somebody finds a text with a given hash.
pub fn fnv1a(text: &str) -> u64 {
    fnv1a_on(0xcbf2_9ce4_8422_2325, text)
}

/// The hash of a text that begins with one whose hash is known, and goes on with `text`.
pub fn fnv1a_on(known: u64, text: &str) -> u64 {
    text.bytes().fold(known, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}
