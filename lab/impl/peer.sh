# ovn-kubernetes itself (central mode, shared gateway), for comparison. PEER_BIN: directory of its ovnkube and ovn-k8s-cni-overlay.
PEER_BIN=${PEER_BIN:?directory of ovn-kubernetes binaries}
flags='--k8s-apiserver=$APISERVER --k8s-cacert=$CA --k8s-token=$(cat $CLUSTER_DIR/k8s/admin.token) --cluster-subnets=$CLUSTER_CIDR --k8s-service-cidrs=$SERVICE_CIDR --mtu=$MTU'
flags+=" --gateway-mode=shared --gateway-interface=br-ex --nodeport --nb-address=\$NB --sb-address=\$SB \$DB_TLS --loglevel=4 ${PEER_ARGS:-}"
IMPL_ACCOUNTS=0
IMPL_SETUP='kubectl get ns ovn-kubernetes || kubectl create ns ovn-kubernetes'
IMPL_MASTER="exec $PEER_BIN/ovnkube --init-master \$NODE $flags"
IMPL_NODE="mkdir -p /run/ovn-kubernetes/cni; exec $PEER_BIN/ovnkube --init-node \$NODE $flags"
IMPL_SHIM=$PEER_BIN/ovn-k8s-cni-overlay
IMPL_BR_INT=1 IMPL_CNI_TXOFF=1 IMPL_MP_TXOFF=1
