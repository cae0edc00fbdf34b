{{/* A value as text. Whole numbers of values files have no exponent and no point; nothing is empty. */}}
{{- define "ovnkube.text" -}}
{{- if kindIs "invalid" . }}{{ else if not (kindIs "float64" .) }}{{ . }}{{ else if eq (floor .) . }}{{ int64 . }}{{ else }}{{ . }}{{ end }}
{{- end }}

{{/* Lines of a container or, pullSecrets, of a pod are indented as in the templates */}}
{{- define "ovnkube.image" }}
        image: {{ printf "%s:%s" .Values.global.image.repository (include "ovnkube.text" .Values.global.image.tag) | quote }}
        imagePullPolicy: {{ .Values.global.image.pullPolicy }}
{{- end }}

{{- define "ovnkube.pullSecrets" }}
{{- with .Values.global.imagePullSecretName }}
      imagePullSecrets: [{name: {{ quote . }}}]
{{- end }}
{{- end }}

{{/* A manifest with one container, with this chart's image: dict file, root */}}
{{- define "ovnkube.manifest" -}}
{{ .root.Files.Get .file
  | replace "        image: ovnkube:latest\n        imagePullPolicy: IfNotPresent" (include "ovnkube.image" .root | trimAll "\n")
  | replace "      dnsPolicy: Default\n" (printf "      dnsPolicy: Default%s\n" (include "ovnkube.pullSecrets" .root)) }}
{{- end }}

{{/* An environment variable, unless the value is empty: dict name, value */}}
{{- define "ovnkube.variable" }}
{{- with include "ovnkube.text" .value }}
        - {name: {{ $.name }}, value: {{ quote . }}}
{{- end }}
{{- end }}

{{/* For Events of the pod: why a container ends. Without the ConfigMap containers start too, and say what is missing */}}
{{- define "ovnkube.alone" }}
        - {name: K8S_NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        - {name: OVN_KUBERNETES_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: POD_UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
        - {name: K8S_APISERVER, valueFrom: {configMapKeyRef: {name: ovn-config, key: k8s_apiserver, optional: true}}}
{{- end }}

{{/* The same for containers that know the databases */}}
{{- define "ovnkube.databases" }}
{{- include "ovnkube.alone" . }}
        - {name: OVN_NORTH, valueFrom: {configMapKeyRef: {name: ovn-config, key: OvnNorth, optional: true}}}
        - {name: OVN_SOUTH, valueFrom: {configMapKeyRef: {name: ovn-config, key: OvnSouth, optional: true}}}
{{- end }}

{{/* What masters and node agents have in common */}}
{{- define "ovnkube.env" }}
{{- include "ovnkube.databases" . }}
        - {name: OVN_NET_CIDR, valueFrom: {configMapKeyRef: {name: ovn-config, key: net_cidr, optional: true}}}
        - {name: OVN_SVC_CIDR, valueFrom: {configMapKeyRef: {name: ovn-config, key: svc_cidr, optional: true}}}
        - {name: OVN_MTU, valueFrom: {configMapKeyRef: {name: ovn-config, key: mtu, optional: true}}}
        - {name: OVN_GATEWAY_MODE, value: {{ .Values.global.gatewayMode | quote }}}
{{- include "ovnkube.settings" (dict "table" "everywhere" "root" .) }}
{{- end }}

{{/* The variables of a table of settings.yaml: dict table, root */}}
{{- define "ovnkube.settings" }}
{{- range $value, $variable := get (.root.Files.Get "settings.yaml" | fromYaml) .table }}
{{- include "ovnkube.variable" (dict "name" $variable "value" (get $.root.Values.global $value)) }}
{{- end }}
{{- end }}

{{/* Addresses of a database: dict addresses, port, protocol */}}
{{- define "ovnkube.remotes" -}}
{{- range $i, $address := splitList "," .addresses }}
{{- if $i }},{{ end }}{{ $.protocol }}:{{ if contains ":" $address }}[{{ $address }}]{{ else }}{{ $address }}{{ end }}:{{ include "ovnkube.text" $.port }}
{{- end }}
{{- end }}

{{/* dict value, pattern, say */}}
{{- define "ovnkube.must" }}
{{- $text := include "ovnkube.text" .value }}
{{- if not (regexMatch .pattern $text) }}{{ fail (printf "%s; it is %q" .say $text) }}{{ end }}
{{- end }}

{{/* dict value, say */}}
{{- define "ovnkube.port" }}
{{- include "ovnkube.must" (dict "value" .value "pattern" "^[1-9][0-9]{0,4}$" "say" .say) }}
{{- if gt (int .value) 65535 }}{{ fail (printf "%s; it is %d" .say (int .value)) }}{{ end }}
{{- end }}

{{- define "ovnkube.check" }}
{{- $settings := .Files.Get "settings.yaml" | fromYaml }}
{{- $known := $settings.other }}
{{- $_ := set $known "global" (concat $known.global (keys $settings.everywhere) (keys $settings.nodes)) }}
{{- range $part, $names := $known }}
  {{- $refused := get $settings.refused $part | default dict }}
  {{- $values := $.Values }}
  {{- range splitList "." $part | compact }}{{ $values = get $values . | default dict }}{{ end }}
  {{- range $name, $value := $values }}
    {{- $full := printf "%s.%s" $part $name | trimPrefix "." }}
    {{- if hasKey $refused $name }}
      {{- if not (has (toString $value) (list "" "false" "<nil>")) }}{{ fail (printf "%s: %s" $full (get $refused $name)) }}{{ end }}
    {{- else if not (has $name $names) }}
      {{- fail (printf "%s is no value of this chart; values.yaml lists them, leave it out" $full) }}
    {{- else if and (kindIs "map" $value) (not (hasKey $known $full)) (not (has $full $settings.maps)) }}
      {{- range keys $value | sortAlpha }}{{ fail (printf "%s.%s is no value of this chart; values.yaml lists them, leave it out" $full .) }}{{ end }}
    {{- end }}
  {{- end }}
{{- end }}
{{- with .Values }}
{{- /* a text is true for a template, also "false" */}}
{{- range $full, $value := dict "ovnkube-db.enabled" (index . "ovnkube-db").enabled "ovs-node.enabled" (index . "ovs-node").enabled
      "identity.webhook" .identity.webhook "identity.approver" .identity.approver
      "tags.ovnkube-db-raft" (.tags | default dict | dig "ovnkube-db-raft" false) }}
  {{- if not (kindIs "bool" $value) }}{{ fail (printf "%s must be true or false, without quotes; it is %q" $full (include "ovnkube.text" $value)) }}{{ end }}
{{- end }}
{{- include "ovnkube.must" (dict "value" .k8sAPIServer "pattern" "^https?://[^ ]+$"
      "say" "k8sAPIServer must be the URL of the API server, such as https://10.0.0.1:6443") }}
{{- include "ovnkube.must" (dict "value" .podNetwork "pattern" "^[0-9a-fA-F:.]+/[0-9]+(/[0-9]+)?(,[0-9a-fA-F:.]+/[0-9]+(/[0-9]+)?)*$"
      "say" "podNetwork must be a range of addresses and the prefix length of a node's share, such as 10.128.0.0/14/23, or a comma list of them") }}
{{- include "ovnkube.must" (dict "value" .serviceNetwork "pattern" "^[0-9a-fA-F:.]+/[0-9]+(,[0-9a-fA-F:.]+/[0-9]+)?$"
      "say" "serviceNetwork must be the API server's --service-cluster-ip-range, such as 172.30.0.0/16") }}
{{- $address := "([0-9A-Za-z.-]+|[0-9a-fA-F]*:[0-9a-fA-F]*:[0-9a-fA-F:.]*)" }}
{{- include "ovnkube.must" (dict "value" .databaseAddress "pattern" (printf "^%s(,%s)*$" $address $address)
      "say" "databaseAddress must be the address of the node with the databases, such as 10.0.0.1, without protocol and port") }}
{{- if .tags | default dict | dig "ovnkube-db-raft" false }}
  {{- if not (has (splitList "," .databaseAddress | uniq | len) (list 3 5)) }}
    {{- fail "databaseAddress must list the addresses of the three (or five) nodes with a member of the databases, as tags.ovnkube-db-raft is true" }}
  {{- end }}
  {{- $raft := index . "ovnkube-db-raft" }}
  {{- range $name := list "nbElectionTimer" "sbElectionTimer" }}
    {{- include "ovnkube.must" (dict "value" (get $raft $name) "pattern" "^[1-9][0-9]*$" "say" (printf "ovnkube-db-raft.%s must be a number" $name)) }}
  {{- end }}
  {{- range $name := list "nbRaftPort" "sbRaftPort" }}
    {{- include "ovnkube.port" (dict "value" (get $raft $name) "say" (printf "ovnkube-db-raft.%s must be a TCP port, such as 6643" $name)) }}
  {{- end }}
{{- else if and (index . "ovnkube-db").enabled (contains "," .databaseAddress) }}
  {{- fail "databaseAddress lists several addresses, but the chart installs databases on one node: give one, set tags.ovnkube-db-raft to true, or set ovnkube-db.enabled to false" }}
{{- end }}
{{- include "ovnkube.must" (dict "value" .mtu "pattern" "^[0-9]*$" "say" "mtu must be a number of bytes, or empty") }}
{{- include "ovnkube.must" (dict "value" (index . "ovs-node").updateStrategy "pattern" "^(OnDelete|RollingUpdate)$" "say" "ovs-node.updateStrategy must be OnDelete or RollingUpdate") }}
{{- include "ovnkube.must" (dict "value" (index . "ovnkube-master").allowUnserved "pattern" "^(true|false|)$" "say" "ovnkube-master.allowUnserved must be true or false") }}
{{- include "ovnkube.must" (dict "value" .uninstall "pattern" "^(true|false|)$" "say" "uninstall must be true or false") }}
{{- if .identity.webhook }}
{{- include "ovnkube.must" (dict "value" .identity.caBundle "pattern" "^[A-Za-z0-9+/]+=*$"
      "say" "identity.caBundle must be the CA of the certificate in the secret ovnkube-admission-cert, as base64") }}
{{- else if semverCompare "<1.33.0-0" $.Capabilities.KubeVersion.Version }}
  {{- fail (printf "the admission policies need Kubernetes 1.33 or later, this is %s: set identity.webhook to true, as docs/install.md describes" $.Capabilities.KubeVersion.Version) }}
{{- end }}
{{- with .global }}
{{- include "ovnkube.port" (dict "value" .nbPort "say" "global.nbPort must be a TCP port, such as 6641") }}
{{- include "ovnkube.port" (dict "value" .sbPort "say" "global.sbPort must be a TCP port, such as 6642") }}
{{- if include "ovnkube.text" .sbRelayPort }}
  {{- include "ovnkube.port" (dict "value" .sbRelayPort "say" "global.sbRelayPort must be a TCP port, such as 16642, or empty") }}
{{- end }}
{{- include "ovnkube.must" (dict "value" .image.pullPolicy "pattern" "^(IfNotPresent|Always|Never)$" "say" "global.image.pullPolicy must be IfNotPresent, Always or Never") }}
{{- include "ovnkube.must" (dict "value" .enableSsl "pattern" "^(true|false|)$" "say" "global.enableSsl must be true or false") }}
{{- include "ovnkube.must" (dict "value" .gatewayMode "pattern" "^(shared|local|)$" "say" "global.gatewayMode must be shared, local or empty") }}
{{- include "ovnkube.must" (dict "value" .image.repository "pattern" "." "say" "global.image.repository must be the name of the image") }}
{{- include "ovnkube.must" (dict "value" .image.tag "pattern" "." "say" "global.image.tag must be the tag of the image") }}
{{- if eq (toString .enableOvnKubeIdentity) "false" }}
  {{- fail "global.enableOvnKubeIdentity: node agents are always restricted, by admission policies or, with identity.webhook, by a webhook; set it to true" }}
{{- end }}
{{- end }}
{{- include "ovnkube.check-databases" . }}
{{- end }}
{{- end }}

{{/* What the pods of the databases would only say in their logs: .Values */}}
{{- define "ovnkube.check-databases" }}
{{- $ssl := eq (toString .global.enableSsl) "true" }}
{{- $members := .tags | default dict | dig "ovnkube-db-raft" false }}
{{- $raft := index . "ovnkube-db-raft" }}
{{- $ports := list (int .global.nbPort) (int .global.sbPort) }}
{{- if $members }}
  {{- $ports = concat $ports (list (int $raft.nbRaftPort) (int $raft.sbRaftPort)) }}
  {{- if not (or $ssl (and (eq (int $raft.nbRaftPort) 6643) (eq (int $raft.sbRaftPort) 6644))) }}
    {{- fail "ovnkube-db-raft.nbRaftPort must be 6643 and sbRaftPort 6644 without TLS (global.enableSsl): nodes keep their pods from these ports only" }}
  {{- end }}
{{- end }}
{{- if or $members (index . "ovnkube-db").enabled }}
  {{- /* a pod compares them with the address of its node */}}
  {{- include "ovnkube.must" (dict "value" .databaseAddress "pattern" "^([0-9.]+|[^,]*:[^,]*)(,([0-9.]+|[^,]*:[^,]*))*$"
        "say" "databaseAddress must have addresses, such as 10.0.0.1, and no names while the databases run in pods") }}
  {{- if $ssl }}{{ $ports = append $ports (int (.global.sbRelayPort | default 16642)) }}{{ end }}
{{- end }}
{{- if ne (len $ports) (len (uniq $ports)) }}
  {{- fail (printf "global.nbPort and global.sbPort must differ, from each other, from the ports of ovnkube-db-raft, and with TLS from global.sbRelayPort, which is 16642 if empty; the ports are %v" $ports) }}
{{- end }}
{{- end }}
