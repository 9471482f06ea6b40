{{- define "pipette.image" -}}
{{- $tag := default .root.Chart.AppVersion .image.tag -}}
{{ .image.repository }}{{ if .image.digest }}@{{ .image.digest }}{{ else }}:{{ $tag }}{{ end }}
{{- end }}

{{/* Final: a DaemonSet's selector cannot be changed. There is one pod network in a cluster, so no release's name is in it. */}}
{{- define "pipette.selector" -}}
app.kubernetes.io/name: pipette
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "pipette.labels" -}}
{{ include "pipette.selector" . }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/part-of: pipette
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
{{- end }}

{{/* agent.yaml of Linux nodes. Maps of the values are merged into it, lists replace its own. */}}
{{- define "pipette.linuxConfig" -}}
{{- $bridge := ternary "br-int" "pipette0" (eq .Values.dataPath "ovs") -}}
{{- $base := dict
  "dataPath" .Values.dataPath
  "networks" (list (dict "name" "pods" "bridge" $bridge))
  "nodes" (dict "registry" (dict "type" "kubernetes"))
-}}
{{- if eq (dig "ovs" "encryption" "none" .Values.linux.config) "ipsec" -}}
{{- /* The node's strongSwan, in the directory that the agents have in common with it. */ -}}
{{- $ipsec := dict "charon" "/run/openvswitch/charon.enfy" -}}
{{- if and .Values.ipsecCertificates.enabled (not (dig "ovs" "ipsec" "certificates" dict .Values.linux.config)) -}}
{{- $_ := set $ipsec "certificates" (dict "from" "cluster" "namespace" .Release.Namespace) -}}
{{- end -}}
{{- $_ := set $base "ovs" (dict "ipsec" $ipsec) -}}
{{- end -}}
{{- include "pipette.withMetrics" (dict "root" . "base" $base "config" .Values.linux.config) }}
{{- end }}

{{/* agent.yaml of Windows nodes. They speak with Linux nodes in the way those do among themselves. */}}
{{- define "pipette.windowsConfig" -}}
{{- $mode := ternary "encap" "noEncap" (eq .Values.dataPath "ovs") -}}
{{- $base := dict
  "dataPath" "hns"
  "networks" (list (dict "name" "pods" "bridge" "br-int" "hns" dict))
  "ovs" (dict "mode" $mode)
  "nodes" (dict "registry" (dict "type" "kubernetes"))
-}}
{{- include "pipette.withMetrics" (dict "root" . "base" $base "config" .Values.windows.config) }}
{{- end }}

{{- define "pipette.withMetrics" -}}
{{- $metrics := .root.Values.metrics -}}
{{- if $metrics.enabled -}}
{{- $_ := set .base "metrics" (dict "listen" (printf "%s:%v" $metrics.address $metrics.port)) -}}
{{- end -}}
{{- if .root.Values.clusterState.enabled -}}
{{- $_ := set .base "clusterState" (dict "namespace" .root.Release.Namespace) -}}
{{- end -}}
{{- toYaml (mergeOverwrite .base (deepCopy .config)) }}
{{- end }}

{{/* "true" where agents with this configuration ask the API server. */}}
{{- define "pipette.asksApiServer" -}}
{{- $nodes := .nodes | default dict -}}
{{- $registry := $nodes.registry | default dict -}}
{{- $services := hasKey . "services" | ternary (default dict .services) (dict "from" "file") -}}
{{- $metrics := hasKey . "metrics" | ternary (default dict .metrics) (dict "plain" true) -}}
{{- $certificates := dig "ipsec" "certificates" "from" "files" (.ovs | default dict) -}}
{{- or (eq $certificates "cluster") (eq (default "" $registry.type) "kubernetes") (ne (default "cluster" $services.from) "file") (not $metrics.plain) -}}
{{- end }}

{{/* "true" where any agent does. */}}
{{- define "pipette.needsRights" -}}
{{- $linux := and .Values.linux.enabled (eq (include "pipette.asksApiServer" (fromYaml (include "pipette.linuxConfig" .))) "true") -}}
{{- $windows := and .Values.windows.enabled (eq (include "pipette.asksApiServer" (fromYaml (include "pipette.windowsConfig" .))) "true") -}}
{{- or $linux $windows -}}
{{- end }}

{{/* What a pod of ours has of its own in either system. */}}
{{- define "pipette.podMetadata" -}}
labels:
  {{- include "pipette.labels" . | nindent 2 }}
  {{- with .workload.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  kubectl.kubernetes.io/default-container: {{ .container }}
  {{- if .checksum }}
  checksum/config: {{ .checksum }}
  {{- end }}
  {{- if .secretChecksum }}
  checksum/ipsec-secret: {{ .secretChecksum }}
  {{- end }}
  {{- with .workload.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "pipette.placement" -}}
os:
  name: {{ .os }}
nodeSelector:
  kubernetes.io/os: {{ .os }}
  {{- with .workload.nodeSelector }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .workload.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .workload.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .workload.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
# Where the data path is.
hostNetwork: true
{{- end }}

{{/* By whom a pod asks the API server, where it does. */}}
{{- define "pipette.account" -}}
{{- if .asks }}
serviceAccountName: {{ .root.Values.serviceAccount.name }}
automountServiceAccountToken: true
{{- else }}
automountServiceAccountToken: false
{{- end }}
{{- end }}

{{/* One text of agent.yaml serves all nodes: what tells them apart comes from the kubelet. */}}
{{- define "pipette.environment" -}}
- name: PIPETTE_NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
{{- if eq .os "windows" }}
- name: PIPETTE_NODE_ADDRESS
  valueFrom:
    fieldRef:
      fieldPath: status.hostIP
{{- end }}
{{- with .root.Values.apiServer.host }}
- name: KUBERNETES_SERVICE_HOST
  value: {{ . | quote }}
{{- end }}
{{- with .root.Values.apiServer.port }}
- name: KUBERNETES_SERVICE_PORT
  value: {{ . | quote }}
{{- end }}
{{- if and (eq .os "linux") (eq .component "agent") .root.Values.ipsec.secret }}
- name: PIPETTE_IPSEC_PSK
  valueFrom:
    secretKeyRef:
      name: {{ .root.Values.ipsec.secret }}
      key: {{ .root.Values.ipsec.key }}
{{- end }}
{{- with .workload.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "pipette.agentArguments" -}}
{{- if .root.Values.followConfig }}
- --follow-config
{{- end }}
- --health-port
- {{ .root.Values.probes.port | quote }}
{{- with .workload.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Not ready while the node has no network for pods; that is no reason to start the agent anew. One that is only full of
     pods is ready: an update has to get past it. */}}
{{- define "pipette.probes" -}}
{{- range $probe, $path := dict "startupProbe" "/startupz" "livenessProbe" "/livez" "readinessProbe" "/readyz" }}
{{ $probe }}:
  httpGet:
    host: 127.0.0.1
    port: {{ $.Values.probes.port }}
    path: {{ $path }}
  {{- toYaml (get $.Values.probes (trimSuffix "Probe" $probe)) | nindent 2 }}
{{- end }}
{{- end }}

{{/* Where the node's strongSwan reads whom to trust, where agents with certificates write it. */}}
{{- define "pipette.trustDirectory" -}}
{{- $ovs := .ovs | default dict -}}
{{- if and (eq (default "none" $ovs.encryption) "ipsec") (dig "ipsec" "certificates" dict $ovs) -}}
{{- dig "ipsec" "certificates" "trustDirectory" "/etc/ipsec.d/cacerts" $ovs -}}
{{- end -}}
{{- end }}

{{/* The directory of Open vSwitch's sockets, where the configuration has the agent use one by a socket. */}}
{{- define "pipette.databaseDir" -}}
{{- if eq (default "bridge" .dataPath) "ovs" -}}
{{- $ovs := .ovs | default dict -}}
{{- $database := default "unix:/run/openvswitch/db.sock" $ovs.database -}}
{{- if hasPrefix "unix:" $database -}}{{ dir (trimPrefix "unix:" $database) }}{{- end -}}
{{- end -}}
{{- end }}
