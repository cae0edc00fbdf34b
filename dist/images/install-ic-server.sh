#!/usr/bin/env bash
# install-ic-server.sh - the databases that connect clusters, as the Deployment ovn-ic-server in kube-system: one server on each node
# with the label kube-ovn/role=master, which control-plane nodes get if no node has it. One such node, or three and more as Raft
# clusters. The files of the databases stay on the nodes, in /etc/origin/ovn. To change a setting, run it again; what is not given then
# stays as it was:
#   TS_NUM=3 bash install-ic-server.sh
# Environment: TS_NUM [3] transit switches, which are the paths between two clusters; IMAGE [ovnkube] without its tag;
#   ENABLE_SSL [false] true: TLS, with key, cert and cacert of the secret kube-ovn-tls. It cannot be changed while servers run
set -euo pipefail
VERSION=latest
label=kube-ovn/role=master
die() { echo "install-ic-server.sh: $*" >&2; exit 1; }

# NAME=VALUE of an earlier run, or of whoever changed the Deployment since
had=$(kubectl get deployment -n kube-system ovn-ic-server --ignore-not-found \
  -o jsonpath='{range .spec.template.spec.containers[0].env[*]}{.name}={.value}{"\n"}{end}WORD={.spec.template.spec.containers[0].args[0]}{"\n"}IMAGE={.spec.template.spec.containers[0].image}')
earlier() { sed -n "s/^$1=//p" <<<"$had"; } # NAME
# Kube-OVN's Deployment has another image
image=
[ "$(earlier WORD)" != ovn-ic-server ] || image=$(earlier IMAGE)
image=${image%@*}
tag=${image##*/}
[[ $tag != *:* ]] || image=${image%:*}
TS_NUM=${TS_NUM:-$(earlier TS_NUM)} TS_NUM=${TS_NUM:-3} IMAGE=${IMAGE:-${image:-ovnkube}}
ssl=$(earlier ENABLE_SSL) ENABLE_SSL=${ENABLE_SSL:-${ssl:-false}}

case $TS_NUM in [1-9]|[12][0-9]|3[0-2]) ;; *) die "TS_NUM is \"$TS_NUM\"; set it to a number from 1 to 32" ;; esac
case ${IMAGE##*/} in *[:@]*|*[!A-Za-z0-9._-]*|'') die "IMAGE is \"$IMAGE\"; leave out its tag: this file has that in the line VERSION" ;; esac
case $ENABLE_SSL in true|false) ;; *) die "ENABLE_SSL is \"$ENABLE_SSL\"; set it to true or false" ;; esac
[ -z "$ssl" ] || [ "$ssl" = "$ENABLE_SSL" ] || die "ENABLE_SSL is \"$ENABLE_SSL\", and the servers run with \"$ssl\": a change would cut off \
their members and all clusters. Remove them with their files, as docs/interconnect-databases.md describes, run this again, and change the \
addresses and keys of the clusters, which write their contents anew; or leave ENABLE_SSL out"
nodes() {
  # of a node's addresses, the first is that of its pods
  kubectl get nodes -l "$label" --sort-by=.metadata.creationTimestamp \
    -o jsonpath='{range .items[*]}{.status.addresses[?(@.type=="InternalIP")].address}{"\n"}{end}' | cut -d' ' -f1
}
addresses=$(nodes)
if [ -z "$addresses" ]; then
  kubectl label nodes -l node-role.kubernetes.io/control-plane "$label" >/dev/null
  addresses=$(nodes)
fi
count=$(echo "$addresses" | grep -c . || true)
case $count in
  0) die "no node has the label $label, and none the role control-plane; label one node, or three: kubectl label node NODE $label" ;;
  2) die "two nodes have the label $label: a Raft cluster needs three, and one is enough without; label another one, or take it from one: kubectl label node NODE kube-ovn/role-" ;;
esac
[ "$ENABLE_SSL" = false ] || kubectl get secret -n kube-system kube-ovn-tls -o name >/dev/null || die "no secret kube-ovn-tls in kube-system: it has the files key, cert and cacert"

before=$(earlier NODE_IPS)
# the first host's databases become the clusters': it is one that has them, whatever the age of its node
addresses=$(for ip in ${before//,/ }; do grep -Fx "$ip" <<<"$addresses" || true; done; grep -vFx -f <(tr , '\n' <<<"$before") <<<"$addresses" || true)
# other hosts: no member goes on without knowing all of them
if [ -n "$before" ] && [ "$before" != "$(echo "$addresses" | paste -sd,)" ]; then
  # a pod of a host that is off never ends by itself, and the script would wait while no server runs
  for node in $(kubectl get pods -n kube-system -l app=ovn-ic-server -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort -u); do
    ready=$(kubectl get node "$node" --ignore-not-found -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}')
    [ "$ready" = True ] || die "node $node has a server and is not Ready: start it; or, if it is off for good, kubectl delete node $node, and run this again"
  done
  kubectl scale -n kube-system deployment/ovn-ic-server --replicas=0
  kubectl wait -n kube-system --for=delete --timeout=60s pod -l app=ovn-ic-server ||
    die "a server does not end within 60 s: look at it with kubectl get pods -n kube-system -l app=ovn-ic-server -o wide, and run this again"
fi
# a server says by labels of its pod whether it leads
kubectl apply -f - >/dev/null <<'YAML'
apiVersion: v1
kind: ServiceAccount
metadata: {name: ovn-ic-server, namespace: kube-system}
automountServiceAccountToken: false
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: ovn-ic-server, namespace: kube-system}
rules:
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: ovn-ic-server, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: ovn-ic-server}
subjects:
- {kind: ServiceAccount, name: ovn-ic-server, namespace: kube-system}
YAML
kubectl apply -f - <<YAML
apiVersion: apps/v1
kind: Deployment
metadata: {name: ovn-ic-server, namespace: kube-system}
spec:
  replicas: $count
  # a server belongs to its node, which has its files and its ports
  strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}
  selector: {matchLabels: {app: ovn-ic-server}}
  template:
    metadata:
      labels: {app: ovn-ic-server, component: network, type: infra}
    spec:
      nodeSelector: {kubernetes.io/os: linux, ${label%=*}: ${label#*=}}
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: ovn-ic-server}}}
      tolerations: [{operator: Exists}]
      priorityClassName: system-cluster-critical
      serviceAccountName: ovn-ic-server
      automountServiceAccountToken: true
      hostNetwork: true
      dnsPolicy: Default
      terminationGracePeriodSeconds: 10
      containers:
      - name: ovn-ic-server
        image: $IMAGE:$VERSION
        imagePullPolicy: IfNotPresent
        args: [ovn-ic-server]
        env:
        - {name: ENABLE_SSL, value: "$ENABLE_SSL"}
        - {name: TS_NUM, value: "$TS_NUM"}
        - {name: NODE_IPS, value: "$(echo "$addresses" | paste -sd,)"}
        - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        - {name: POD_IPS, valueFrom: {fieldRef: {fieldPath: status.podIPs}}}
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
        - {name: OVN_LEADER_PROBE_INTERVAL, value: "5"}
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities: {drop: [ALL]}
          seccompProfile: {type: RuntimeDefault}
          # where SELinux is on: hostPath directories and the sockets in them
          seLinuxOptions: {type: spc_t}
        # no liveness probe: a member without a leader waits for the others, and one that has failed ends by itself
        readinessProbe: {exec: {command: [ovnkube.sh, readiness-probe, -t, ovn-ic-db]}, periodSeconds: 5, timeoutSeconds: 10}
        resources: {requests: {cpu: 100m, memory: 200Mi}}
        terminationMessagePolicy: FallbackToLogsOnError
        volumeMounts:
        - {name: databases, mountPath: /etc/ovn}
        - {name: run, mountPath: /var/run/ovn}
        - {name: tmp, mountPath: /tmp}
        - {name: tls, mountPath: /var/run/tls, readOnly: true}
      volumes:
      - {name: databases, hostPath: {path: /etc/origin/ovn, type: DirectoryOrCreate}}
      - {name: run, emptyDir: {}}
      - {name: tmp, emptyDir: {}}
      - {name: tls, secret: {secretName: kube-ovn-tls, optional: true, defaultMode: 0400}}
YAML
kubectl rollout status -n kube-system deployment/ovn-ic-server --timeout=600s
echo "OVN IC Server installed Successfully"
