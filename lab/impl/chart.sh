# The chart of ovn-kubernetes v1.3.0 for central mode (values-no-ic.yaml) with the image that lab/image makes of the checkout. Of its
# values, those change that every user sets, and the image: docs/migrate.md. Needs `--db pods`.
#   CHART_DIR (required): the directory helm/ovn-kubernetes of that release
#   OVNKUBE [target/lab/ovnkube], OVNKUBE_SHIM [ovn-k8s-cni-overlay beside it]
[ "${DB:-pods}" = pods ] || die "--impl chart needs --db pods"
[ -s "${CHART_DIR:-}/values-no-ic.yaml" ] || die "--impl chart needs CHART_DIR, the directory helm/ovn-kubernetes of ovn-kubernetes v1.3.0"
[ -x "$BIN/helm" ] || die "no $BIN/helm: run lab/install helm"
IMPL_PODS=1 IMPL_ACCOUNTS=0 IMPL_OVS=0 IMPL_AGENT=ovnkube-node/ovnkube-node IMPL_OVS_DIR=/etc/origin/openvswitch
image
IMPL_SETUP="HOME=$D helm install ovn-kubernetes $(realpath "$CHART_DIR") -f $(realpath "$CHART_DIR")/values-no-ic.yaml \
  --set k8sAPIServer=\$APISERVER --set podNetwork=\$CLUSTER_CIDR --set serviceNetwork=\$SERVICE_CIDR --set mtu=\$MTU \
  --set global.image.repository=docker.io/library/ovnkube,global.image.tag=latest"
