# ovnkube as dist/yaml or, with `--db pods-raft`, dist/yaml-raft installs it: databases, northd, master, Open vSwitch, ovn-controller and
# node agents in pods, from the image that lab/image makes of the checkout. Needs `--db pods` or `--db pods-raft`.
#   OVNKUBE [target/lab/ovnkube], OVNKUBE_SHIM [ovn-k8s-cni-overlay beside it], OVNKUBE_OVS [pods] (or host: the hosts run Open vSwitch
#   themselves, with the NIC in br-ex), OVNKUBE_IMAGE [images/ovnkube.tar in LAB_HOME], the file of the image
[[ ${DB:-pods} = pods* ]] || die "--impl daemonset needs --db pods or --db pods-raft"
[ "${DB:-pods}" != pods-raft ] || [ "$NODES" -ge 3 ] || die "--db pods-raft needs three nodes"
manifests=yaml${DB#pods}
IMPL_PODS=1 IMPL_ACCOUNTS=0 IMPL_IMAGES=${OVNKUBE_IMAGE:-$LAB_HOME/images/ovnkube.tar}
"$HERE/image" "$IMPL_IMAGES" || die "no image"
IMPL_OVS=0 nic=eth0
[ "${OVNKUBE_OVS:-pods}" = pods ] || IMPL_OVS=1 nic=br-ex
IMPL_SETUP="kubectl apply -f $HERE/../dist/$manifests && kubectl create configmap ovn-config -n ovn-kubernetes --from-literal=OvnNorth=\$NB \
  --from-literal=OvnSouth=\$SB --from-literal=k8s_apiserver=\$APISERVER --from-literal=net_cidr=\$CLUSTER_CIDR \
  --from-literal=svc_cidr=\$SERVICE_CIDR --from-literal=mtu=\$MTU --from-literal=gateway_opts=--gateway-interface=$nic"
