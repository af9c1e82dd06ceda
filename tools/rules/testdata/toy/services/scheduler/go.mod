module keelson.dev/services/scheduler

go 1.26.0

require (
	k8s.io/apiserver v0.0.0
	k8s.io/kubernetes v0.0.0
	keelson.dev/services/podgc v0.0.0
)

replace (
	k8s.io/apiserver => ../../fake/apiserver
	k8s.io/kubernetes => ../../fake/kubernetes
	keelson.dev/services/podgc => ../../fake/podgc
)
