module keelson.dev/services/apiserver

go 1.26.0

require k8s.io/apiserver v0.0.0

replace k8s.io/apiserver => ../../fake/apiserver
