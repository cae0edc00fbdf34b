# The checkout's own ovnkube with the master as a separate process beside the apiserver. Variables as in ovnkube.sh.
. "$HERE/impl/ovnkube.sh"
IMPL_MASTER="exec $OVNKUBE --init-master \$NODE $flags"
IMPL_NODE1=$IMPL_NODE
