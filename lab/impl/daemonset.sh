# ovnkube as dist/yaml or, with `--db pods-raft`, dist/yaml-raft installs it: databases, northd, master, Open vSwitch, ovn-controller and
# node agents in pods, from the image that lab/image makes of the checkout. Needs `--db pods` or `--db pods-raft`.
#   OVNKUBE [target/lab/ovnkube], OVNKUBE_SHIM [ovn-k8s-cni-overlay beside it], OVNKUBE_OVS [pods] (or host: the hosts run Open vSwitch
#   themselves, with the NIC in br-ex), OVNKUBE_IMAGE [images/ovnkube.tar in LAB_HOME, or ovnkube-26.03.tar], the file of the image, OVNKUBE_CHART=1 (the chart
#   dist/helm/ovnkube in place of the manifests)
[[ ${DB:-pods} = pods* ]] || die "--impl daemonset needs --db pods or --db pods-raft"
[ "${DB:-pods}" != pods-raft ] || [ "$NODES" -ge 3 ] || die "--db pods-raft needs three nodes"
manifests=yaml${DB#pods}
IMPL_PODS=1 IMPL_ACCOUNTS=0
image
IMPL_OVS=0 nic=eth0
[ "${OVNKUBE_OVS:-pods}" = pods ] || IMPL_OVS=1 nic=br-ex
secrets=
# as docs/tls.md has them
[ "$SSL" = 0 ] || secrets="kubectl create secret generic ovnkube-db-cert -n ovn-kubernetes --from-file=tls.key=$D/pki/server-db.key --from-file=tls.crt=$D/pki/server-db.crt \
    --from-file=ca.crt=$D/pki/control.crt --from-file=clients.crt=$D/pki/both.crt &&"
if [ -n "${OVNKUBE_CHART:-}" ]; then # commas in values of helm have a backslash before them
  [ -x "$BIN/helm" ] || die "no $BIN/helm: run lab/install helm"
  IMPL_SETUP="kubectl create namespace ovn-kubernetes && $secrets
    at=\$(sed 's/[a-z]*:\(\[[^]]*\]\|[^:,]*\):[0-9]*/\1/g' <<<\"\$NB\" | tr -d '[]') &&
    HOME=$D helm install ovnkube $HERE/../dist/helm/ovnkube --namespace ovn-kubernetes --take-ownership --set databaseAddress=\"\${at//,/\\\\,}\" \
      --set k8sAPIServer=\$APISERVER,podNetwork=\"\${CLUSTER_CIDR//,/\\\\,}\",serviceNetwork=\"\${SERVICE_CIDR//,/\\\\,}\",mtu=\$MTU \
      --set global.gatewayOpts=--gateway-interface=$nic,global.enableSsl=$([ "$SSL" = 0 ] && echo false || echo true)$([ "$DB" = pods ] || echo ,tags.ovnkube-db-raft=true)"
else
  IMPL_SETUP="kubectl apply -f $HERE/../dist/$manifests/accounts.yaml && $secrets kubectl create configmap ovn-config -n ovn-kubernetes --from-literal=OvnNorth=\$NB \
  --from-literal=OvnSouth=\$SB --from-literal=k8s_apiserver=\$APISERVER --from-literal=net_cidr=\$CLUSTER_CIDR \
  --from-literal=svc_cidr=\$SERVICE_CIDR --from-literal=mtu=\$MTU --from-literal=gateway_opts=--gateway-interface=$nic && kubectl apply -f $HERE/../dist/$manifests"
fi
