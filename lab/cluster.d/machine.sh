# Changes on the machine itself that a cluster cannot avoid: sysctls that every kubelet sets, inotify instances (it needs many),
# and directories that must exist so that a node can mount its own over them. The first `up` saves the old state, the last `down`
# restores it. Sourced by lab/cluster.
SYSCTLS="fs.inotify.max_user_instances vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops kernel.keys.root_maxkeys kernel.keys.root_maxbytes"
NODE_DIRS="var/lib/containerd var/lib/kubelet var/lib/cni etc/cni/net.d opt/cni/bin var/log/pods var/log/containers
 var/lib/openvswitch var/lib/ovn var/log/ovn-kubernetes var/log/openvswitch var/log/ovn etc/openvswitch etc/origin/openvswitch etc/origin/ovn etc/ovn"

machine_keep() ( # with this cluster's directory, by which machine_restore of another one sees it
  flock 9
  mkdir -p "$D"
  local keep=$LAB_HOME/clusters/.machine d path part
  [ ! -e "$keep" ] || exit 0
  mkdir -p "$keep"
  # shellcheck disable=SC2086 # names are words
  sysctl -e $SYSCTLS >"$keep/sysctls" 2>/dev/null || true
  # the kernel's default of 128 is enough for about five kubelets; a kubelet that gets none does not start
  sysctl -q fs.inotify.max_user_instances=1024
  : >"$keep/dirs"
  for d in $NODE_DIRS; do
    path=
    for part in ${d//\// }; do
      path+=/$part
      [ -d "$path" ] || { mkdir "$path"; echo "$path" >>"$keep/dirs"; }
    done
  done
) 9<"$LAB_HOME"
machine_restore() {
  local keep=$LAB_HOME/clusters/.machine d
  [ -d "$keep" ] || return 0
  (
    flock 9
    [ -d "$keep" ] && [ -z "$(ls "$LAB_HOME/clusters")" ] || exit 0
    sysctl -q -p "$keep/sysctls" 2>/dev/null || true
    for d in $(tac "$keep/dirs"); do rmdir "$d" 2>/dev/null || true; done # one that is in use by now stays
    rm -r "$LAB_HOME/clusters"
  ) 9<"$LAB_HOME"
}
