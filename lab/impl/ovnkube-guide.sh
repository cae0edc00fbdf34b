# ovnkube with the command lines of the first guide to clustered databases, word for word, from the time when masters were called so and
# nodes minions. Masters (`--masters 3`) are `-init-master … -init-node` on the first nodes and create no gateways. The others are minions:
# an empty -k8s-service-cidr=, and -cluster-subnets is the service range. They take the cluster's values from a ConfigMap of the master.
. "$HERE/impl/ovnkube.sh"
addresses='ovn_nb=${NB//tcp:/tcp://} ovn_sb=${SB//tcp:/tcp://}; mkdir -p /var/log/openvswitch;'
IMPL_NODE1="$addresses exec $OVNKUBE -k8s-kubeconfig \$ACCESS -loglevel=4 -k8s-apiserver=\"\$APISERVER\" -logfile=/var/log/openvswitch/ovnkube.log \
 -init-master=\"\$NODE\" -cluster-subnets=\"\$CLUSTER_CIDR\" -init-node=\"\$NODE\" -k8s-service-cidr=\"\$SERVICE_CIDR\" \
 -k8s-token=\"\$(cat \$CLUSTER_DIR/k8s/admin.token)\" -nodeport -nb-address=\"\${ovn_nb}\" -sb-address=\"\${ovn_sb}\""
IMPL_NODE="$addresses exec $OVNKUBE -k8s-kubeconfig \$ACCESS -loglevel=4 -logfile=/var/log/openvswitch/ovnkube.log -k8s-apiserver=\"\$APISERVER\" \
 -init-node=\"\$NODE\" -nb-address=\"\${ovn_nb}\" -sb-address=\"\${ovn_sb}\" -k8s-token=\"\$(cat \$CLUSTER_DIR/k8s/admin.token)\" \
 -init-gateways -k8s-service-cidr= -cluster-subnets=\"\$SERVICE_CIDR\""
IMPL_PLAN=
