# The checkout's own ovnkube as the project ships it: master and node agent of n1 in one process, node agents on the other nodes.
#   OVNKUBE [target/lab/ovnkube], OVNKUBE_SHIM [ovn-k8s-cni-overlay beside it], OVNKUBE_GATEWAY [shared] (or local; empty: none),
#   OVNKUBE_ARGS (more flags), OVNKUBE_LOGFILE (when a part starts: the file it logs to) [stderr]
OVNKUBE=$(realpath -m "${OVNKUBE:-${CARGO_TARGET_DIR:-$HERE/../target}/lab/ovnkube}")
IMPL_SHIM=${OVNKUBE_SHIM:-$(dirname "$OVNKUBE")/ovn-k8s-cni-overlay}
IMPL_SETUP="kubectl apply -f $HERE/../dist/yaml/accounts.yaml -f $HERE/../dist/yaml/admission.yaml -f $HERE/../dist/yaml/subnets.yaml -f $HERE/../dist/systemd/rbac-kubelet.yaml"
[ -x "$OVNKUBE" ] || die "no $OVNKUBE: cargo build --profile lab (or set OVNKUBE)"
flags='--k8s-kubeconfig=$ACCESS --cluster-subnets=$CLUSTER_CIDR --k8s-service-cidrs=$SERVICE_CIDR ${MTU:+--mtu=$MTU}'
flags+=" --nb-address=\$NB --sb-address=\$SB \$DB_TLS"
OVNKUBE_GATEWAY=${OVNKUBE_GATEWAY-shared}
[ -z "$OVNKUBE_GATEWAY" ] || flags+=" --gateway-mode=$OVNKUBE_GATEWAY --gateway-interface=$UPLINK --nodeport"
flags+=" \${OVNKUBE_LOGFILE:+--logfile=\$OVNKUBE_LOGFILE} ${OVNKUBE_ARGS:-}"
IMPL_NODE="exec $OVNKUBE --init-node \$NODE $flags"
IMPL_NODE1="exec $OVNKUBE --init-master \$NODE --init-node \$NODE $flags"
IMPL_PLAN="exec $OVNKUBE plan --node \$NODE $flags"
