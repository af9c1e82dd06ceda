{{/*
keelson.daemon renders everything of one daemon: its account, its rights, its Deployment and its test. It takes
  root        the sub-chart's own context
  clusterRole the role that the apiserver keeps for this daemon
  args        flags of this daemon alone
  rootCA      whether the root CA is mounted
*/}}
{{- define "keelson.daemon" -}}
{{- $v := .root.Values -}}
{{- $name := include "keelson.name" .root -}}
{{- $namespace := $v.global.namespace -}}
{{- $labels := include "keelson.labels" .root -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  labels: {{- $labels | nindent 4 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels: {{- $labels | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ .clusterRole }}
subjects:
  - kind: ServiceAccount
    name: {{ $name }}
    namespace: {{ $namespace }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  labels: {{- $labels | nindent 4 }}
spec:
  replicas: {{ $v.replicas }}
  {{- if eq $v.antiAffinity "required" }}
  {{- /* There may be no node for one Pod more. */}}
  strategy:
    rollingUpdate: {maxSurge: 0, maxUnavailable: 1}
  {{- end }}
  selector:
    matchLabels: {{- include "keelson.selector" .root | nindent 6 }}
  template:
    metadata:
      labels: {{- $labels | nindent 8 }}
    spec: {{- include "keelson.pod" . | nindent 6 }}
{{- if $v.podDisruptionBudget.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  labels: {{- $labels | nindent 4 }}
spec:
  maxUnavailable: {{ $v.podDisruptionBudget.maxUnavailable }}
  selector:
    matchLabels: {{- include "keelson.selector" .root | nindent 6 }}
{{- end }}
---
{{- /* `helm test` asks by the daemon's own program, and with its rights, whether its Leases are held and renewed. */}}
apiVersion: v1
kind: Pod
metadata:
  name: {{ $name }}-test
  namespace: {{ $namespace }}
  labels:
    app.kubernetes.io/name: keelson-test
    app.kubernetes.io/instance: {{ .root.Release.Name }}
    app.kubernetes.io/part-of: keelson
    app.kubernetes.io/managed-by: {{ .root.Release.Service }}
  annotations:
    helm.sh/hook: test
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
spec:
  restartPolicy: Never
  serviceAccountName: {{ $name }}
  {{- include "keelson.security" . | nindent 2 }}
  containers:
    - name: leases
      {{- include "keelson.program" . | nindent 6 }}
      args: [leases]
{{- end }}

{{- define "keelson.pod" -}}
{{- $v := .root.Values -}}
{{- $name := include "keelson.name" .root -}}
serviceAccountName: {{ $name }}
priorityClassName: {{ $v.priorityClassName }}
{{ include "keelson.security" . }}
containers:
  - name: {{ .root.Chart.Name }}
    {{- include "keelson.program" . | nindent 4 }}
    args:
      - --status-address=0.0.0.0:{{ $v.statusPort }}
      - --status-client-ca-file=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt
      - --log-level={{ $v.logLevel }}
      {{- range .args }}
      - {{ . | quote }}
      {{- end }}
      {{- range $v.extraArgs }}
      - {{ . | quote }}
      {{- end }}
    ports:
      - name: status
        containerPort: {{ $v.statusPort }}
    livenessProbe:
      httpGet: {path: /livez, port: status, scheme: HTTPS}
      initialDelaySeconds: 10
      periodSeconds: 10
      timeoutSeconds: 5
    readinessProbe:
      httpGet: {path: /readyz, port: status, scheme: HTTPS}
      periodSeconds: 2
      timeoutSeconds: 5
    resources: {{- $v.resources | toYaml | nindent 6 }}
    {{- if .rootCA }}
    volumeMounts:
      - name: root-ca
        mountPath: /etc/keelson/root-ca
        readOnly: true
    {{- end }}
{{- if .rootCA }}
volumes:
  - name: root-ca
    configMap: {name: kube-root-ca.crt}
{{- end }}
{{- if eq $v.antiAffinity "preferred" }}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels: {{- include "keelson.selector" .root | nindent 14 }}
{{- else if eq $v.antiAffinity "required" }}
affinity:
  podAntiAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels: {{- include "keelson.selector" .root | nindent 12 }}
{{- end }}
{{- with $v.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
  - topologyKey: {{ .topologyKey }}
    maxSkew: {{ .maxSkew }}
    whenUnsatisfiable: {{ .whenUnsatisfiable }}
    labelSelector:
      matchLabels: {{- include "keelson.selector" $.root | nindent 8 }}
  {{- end }}
{{- end }}
{{- with $v.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $v.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "keelson.security" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 65534
  runAsGroup: 65534
  fsGroup: 65534
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* keelson.program is of a container what its image is, what it may do, and how it reaches the apiserver. */}}
{{- define "keelson.program" -}}
{{- $v := .root.Values -}}
image: {{ printf "%s:%s" $v.image.repository $v.image.tag | quote }}
imagePullPolicy: {{ $v.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- with $v.global.apiserver.host }}
env:
  - name: KUBERNETES_SERVICE_HOST
    value: {{ . | quote }}
  - name: KUBERNETES_SERVICE_PORT
    value: {{ $v.global.apiserver.port | quote }}
{{- end }}
{{- end }}

{{/* The release is in front, so that several of one daemon run side by side. */}}
{{- define "keelson.name" -}}
{{- printf "%s-%s" .Release.Name .Chart.Name -}}
{{- end }}

{{- define "keelson.selector" -}}
app.kubernetes.io/name: keelson-{{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "keelson.labels" -}}
{{ include "keelson.selector" . }}
app.kubernetes.io/part-of: keelson
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
