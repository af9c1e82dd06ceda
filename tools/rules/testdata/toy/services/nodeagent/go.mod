module keelson.dev/services/nodeagent

go 1.26.0

require k8s.io/klog/v2 v2.0.0

replace k8s.io/klog/v2 => ../../fake/klog
