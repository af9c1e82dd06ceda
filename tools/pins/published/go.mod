module keelson.dev/tools/pins/published

go 1.26.0

require (
	github.com/argoproj/argo-cd/v3 v3.4.0
	github.com/cert-manager/cert-manager v1.20.0
	github.com/prometheus-operator/prometheus-operator v0.92.0
)
