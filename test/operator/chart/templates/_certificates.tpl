{{/* The authority and the certificate of the webhooks: those that are there already, or new ones. */}}
{{- define "certificates" -}}
{{- $name := "operator-certificates" -}}
{{- $there := lookup "v1" "Secret" .Release.Namespace $name -}}
{{- if $there -}}
{{- dict "ca.crt" (index $there.data "ca.crt") "tls.crt" (index $there.data "tls.crt") "tls.key" (index $there.data "tls.key") | toJson -}}
{{- else -}}
{{- $host := printf "operator.%s.svc" .Release.Namespace -}}
{{- $ca := genCA "operator" 30 -}}
{{- $pair := genSignedCert $host nil (list $host) 30 $ca -}}
{{- dict "ca.crt" ($ca.Cert | b64enc) "tls.crt" ($pair.Cert | b64enc) "tls.key" ($pair.Key | b64enc) | toJson -}}
{{- end -}}
{{- end -}}
