# As ovnkube.sh, on a router that was there before with a uuid of its own, as after a change over from ovn-kubernetes. ovnkube gives its
# router the same uuid in every cluster, and ovn-ic does not learn the routes of a router with the uuid of its own.
. "$HERE/impl/ovnkube.sh"
IMPL_SETUP+=" && ovn-nbctl --db=unix:$D/db/nb-1.sock --may-exist lr-add ovn_cluster_router"
