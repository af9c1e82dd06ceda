package scenario

import (
	"regexp"
	"strings"
	"testing"

	"keelson.dev/test/mesh"
)

// ScaleOfEachKind scales what can be scaled by hand, and then leaves it to autoscalers that kubectl autoscale makes:
// they see what the Pods use, as kubectl top does, and keep their lower bounds.
//
// DEP-099 DEP-210 DEP-241
func ScaleOfEachKind(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(strings.ReplaceAll(everyWorkload, "image: "+Server+"}", "image: "+Server+
		", resources: {requests: {cpu: 10m, memory: 16Mi}}}"), "apply", "-f", "-")
	owners := []struct{ kind, of string }{{"deployment.apps", "deploy"}, {"replicaset.apps", "rs"},
		{"replicationcontroller", "rc"}, {"statefulset.apps", "sts"}}
	var all []string
	for _, owner := range owners {
		all = append(all, owner.kind+"/every")
	}
	w.says(strings.Join(all, " scaled\n")+" scaled", append([]string{"scale", "--replicas=0"}, all...)...)
	w.Await("no Pod of them", func() Answer {
		return Left(w.Kubectl("get", "pods", "-l", "of in (deploy,rs,rc,sts)", "-o", "name"))
	})
	w.says(strings.Join(all, " scaled\n")+" scaled", append([]string{"scale", "--replicas=1", "--current-replicas=0"},
		all...)...)
	for _, kind := range []string{"daemonset", "job", "cronjob", "pod"} {
		w.refuses("", []string{"the server could not find the requested resource"}, "scale", kind+"/every",
			"--replicas=2")
	}
	// No Pod uses a hundred times its request, which is a whole core, also not while it starts.
	const enough = "--cpu=10000%"
	for _, owner := range owners {
		w.awaitActive("of="+owner.of, 1)
		w.says(
			"horizontalpodautoscaler.autoscaling/"+owner.of+" autoscaled",
			"autoscale",
			owner.kind+"/every",
			"--name",
			owner.of,
			"--min=2",
			"--max=3",
			enough,
		)
	}
	w.refuses("", []string{"cannot autoscale a DaemonSet: could not find scale subresource"}, "autoscale",
		"daemonset/every", "--max=3")
	for _, owner := range owners {
		w.awaitActive("of="+owner.of, 2)
		w.Kubectl("wait", "hpa/"+owner.of, "--for=condition=ScalingActive", "--timeout=90s")
		row := regexp.MustCompile(`^` + owner.of + ` +\w+/every +cpu: \d+%/10000% +2 +3 +[23] `)
		w.Await("the autoscaler of "+owner.kind+" to tell what is used", func() Answer {
			if got := w.Kubectl("get", "hpa", owner.of, "--no-headers"); !row.MatchString(got) {
				return Saw(got)
			}
			return ""
		})
		// What a Pod uses is known from its second measurement on.
		w.Await("kubectl top to tell of both Pods of "+owner.kind, func() Answer {
			if got := w.Kubectl("top", "pods", "-l", "of="+owner.of, "--no-headers"); strings.Count(got, "\n") < 2 {
				return Saw(got)
			}
			return ""
		})
	}
}
