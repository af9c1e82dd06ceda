package scenario

import (
	"strings"
	"testing"

	"keelson.dev/test/mesh"
)

// KubectlExpose puts Services before what has Pods by kubectl expose, and asks each for its Pods through the apiserver.
func KubectlExpose(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(everyWorkload+everyService, "apply", "-f", "-")
	w.Kubectl("label", "pod", "every", "of=pod")
	w.Kubectl("wait", "pods", "-l", "of", "--for=condition=Ready", "--timeout=90s")
	for _, row := range []struct {
		kind, of string
		flags    []string
	}{
		{"pod", "pod", nil}, {"deployment", "deploy", []string{"--type=NodePort"}}, {"replicaset", "rs", nil},
		{"replicationcontroller", "rc", []string{"--protocol=TCP", "--labels=of=exposed"}},
		{"service", "deploy", []string{"--session-affinity=ClientIP"}},
	} {
		name := "of-" + row.kind
		w.says("service/"+name+" exposed", append([]string{"expose", row.kind, "every", "--name=" + name, "--port=80",
			"--target-port=8080"}, row.flags...)...)
		w.says(`{"of":"`+row.of+`"}`, "get", "service", name, "-o", "jsonpath={.spec.selector}")
		w.Await("who answers for "+name, func() Answer {
			r := w.TryKubectl("", "get", "--raw",
				"/api/v1/namespaces/"+w.Namespace+"/services/"+name+":80/proxy/hostname")
			if !strings.HasPrefix(r.Stdout, "every") {
				return Saw(r.Stdout + r.Stderr)
			}
			return ""
		})
	}
	w.refuses("", []string{"cannot expose a CronJob.batch"}, "expose", "cronjob", "every", "--port=80")
	w.refuses("", []string{"couldn't find port via --port flag or introspection"}, "expose", "deployment", "every",
		"--name=portless")
	w.refuses("", []string{`services "of-pod" already exists`}, "expose", "pod", "every", "--name=of-pod", "--port=80")
}
