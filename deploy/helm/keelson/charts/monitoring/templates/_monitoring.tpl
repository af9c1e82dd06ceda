{{/* monitoring.metadata is that of an object; it takes the chart's context as root, and a name. */}}
{{- define "monitoring.metadata" -}}
name: {{ .root.Release.Name }}-{{ .name }}
namespace: {{ .root.Values.global.namespace }}
labels:
  app.kubernetes.io/name: keelson-monitoring
  app.kubernetes.io/instance: {{ .root.Release.Name }}
  app.kubernetes.io/part-of: keelson
  app.kubernetes.io/managed-by: {{ .root.Release.Service }}
  {{- with .root.Values.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
