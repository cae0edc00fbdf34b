# ovn_programs ROOTFS DIR [PROGRAM...] - OVS and OVN of another root file system as wrapper scripts in DIR that use its loader
# and libraries. Not chroot: /run, /etc and /var stay the caller's. With an empty ROOTFS it only creates DIR. Sourced by
# cluster and ovnlab.
ovn_programs() {
  local r=$1 dir=$2 f real libs loader
  mkdir -p "$dir"
  [ -n "$r" ] || return 0
  shift 2
  [ $# -gt 0 ] || set -- ovs-appctl ovs-ofctl ovs-vsctl ovs-dpctl ovsdb-client ovsdb-tool ovn-appctl ovn-controller ovn-nbctl ovn-sbctl ovn-northd \
    ovn-trace ovn-ic ovn-ic-nbctl ovn-ic-sbctl ovsdb-server ovs-vswitchd
  libs=$(echo "$r"/usr/lib/*-linux-gnu) loader=$(echo "$r"/usr/lib/*-linux-gnu/ld-linux-*.so.?)
  for f in "$@"; do
    # ovs-vswitchd is an alternative, a dangling link until a package manager configures it
    for real in "$r"/usr/{bin,sbin,lib/openvswitch-switch}/$f; do [ ! -x "$real" ] || break; done
    printf '#!/bin/sh\nexec %s --argv0 %s --library-path %s %s "$@"\n' "$loader" $f "$libs" "$real" >"$dir/$f"
    chmod +x "$dir/$f"
  done
}
