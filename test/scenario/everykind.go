package scenario

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"keelson.dev/test/mesh"
)

// every is a manifest of an object of that kind whose name is "every"; rest are its fields beside the metadata.
func every(version, kind, rest string) string {
	return fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {name: every}\n%s\n", version, kind, rest)
}

// template is one of Pods that run on and on, labelled by what they are of; spec is more of their spec.
func template(of, spec string) string {
	return "template: {metadata: {labels: {of: " + of + "}}, spec: {" + spec +
		"terminationGracePeriodSeconds: 1, containers: [{name: main, image: " + Server + "}]}}"
}

// selected is the spec of who has Pods of that template, but for how many there are.
func selected(of string) string {
	return "selector: {matchLabels: {of: " + of + "}}, " + template(of, "")
}

// everyWorkload has an object of each kind that runs Pods, with one Pod each; the CronJob fires once a year.
var everyWorkload = every("v1", "Pod", "spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: "+
	Server+"}]}") +
	every("v1", "ReplicationController", "spec: {replicas: 1, selector: {of: rc}, "+template("rc", "")+"}") +
	every("apps/v1", "ReplicaSet", "spec: {replicas: 1, "+selected("rs")+"}") +
	every("apps/v1", "Deployment", "spec: {replicas: 1, "+selected("deploy")+"}") +
	every("apps/v1", "StatefulSet", "spec: {replicas: 1, serviceName: every, "+selected("sts")+"}") +
	every("apps/v1", "DaemonSet", "spec: {"+selected("ds")+"}") +
	every("batch/v1", "Job", "spec: {"+template("job", "restartPolicy: Never, ")+"}") +
	every("batch/v1", "CronJob", `spec: {schedule: "0 0 1 1 *", jobTemplate: {spec: {`+
		template("cj", "restartPolicy: Never, ")+"}}}")

// everyService is before the Pods of the Deployment.
var everyService = every("v1", "Service", "spec: {selector: {of: deploy}, ports: [{port: 80, targetPort: 8080}]}")

// everyOther has an object of each kind that workloads stand on.
var everyOther = every("v1", "ConfigMap", "data: {colour: blue}") +
	every("v1", "Secret", "data: {word: aHVzaA==}") +
	every("v1", "ServiceAccount", "") +
	everyService +
	every("v1", "PersistentVolumeClaim",
		"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}") +
	every("v1", "LimitRange",
		"spec: {limits: [{type: Container, default: {memory: 64Mi}, defaultRequest: {memory: 8Mi}}]}") +
	every("v1", "ResourceQuota", `spec: {hard: {pods: "90"}}`) +
	every("v1", "PodTemplate", template("pt", "")) +
	every("autoscaling/v2", "HorizontalPodAutoscaler",
		"spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: every}, maxReplicas: 2}") +
	every("policy/v1", "PodDisruptionBudget", "spec: {minAvailable: 1, selector: {matchLabels: {of: deploy}}}") +
	every("rbac.authorization.k8s.io/v1", "Role", `rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]`) +
	every("rbac.authorization.k8s.io/v1", "RoleBinding", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, "+
		"name: every}\nsubjects: [{kind: ServiceAccount, name: every}]") +
	every("networking.k8s.io/v1", "Ingress", "spec: {defaultBackend: {service: {name: every, port: {number: 80}}}}") +
	every("networking.k8s.io/v1", "NetworkPolicy", "spec: {podSelector: {}}") +
	every("coordination.k8s.io/v1", "Lease", "spec: {holderIdentity: nobody}")

// everyName are the objects of both, as kubectl calls them.
var everyName = strings.Fields(`configmap secret serviceaccount service persistentvolumeclaim limitrange resourcequota
	podtemplate horizontalpodautoscaler.autoscaling poddisruptionbudget.policy role.rbac.authorization.k8s.io
	rolebinding.rbac.authorization.k8s.io ingress.networking.k8s.io networkpolicy.networking.k8s.io
	lease.coordination.k8s.io pod replicationcontroller replicaset.apps deployment.apps statefulset.apps daemonset.apps
	job.batch cronjob.batch`)

// each returns kubectl's output for objects of these kinds: a line for each, which ends with the action.
func each(kinds []string, done string) string {
	var lines []string
	for _, kind := range kinds {
		lines = append(lines, strings.TrimSpace(kind+"/every "+done))
	}
	return strings.Join(lines, "\n")
}

// KubectlOnEveryKind does to an object of every kind what kubectl does to any: it is created, shown, described,
// labelled, annotated, patched, compared, applied by the server for two who differ, waited for and deleted.
func KubectlOnEveryKind(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	text := everyOther + everyWorkload
	changed := strings.ReplaceAll(text, "metadata: {name: every}", `metadata: {name: every, labels: {size: small}}`)
	dir := w.directory(map[string]string{"every.yaml": text, "changed.yaml": changed,
		"other.yaml": strings.ReplaceAll(changed, "size: small", "size: large")})
	file := filepath.Join(dir, "every.yaml")
	all := func(done string, args ...string) {
		t.Helper()
		w.says(each(everyName, done), append(args, "-f", file)...)
	}
	all("created", "create")
	again := w.TryKubectl("", "create", "-f", file)
	if n := strings.Count(again.Stderr, `"every" already exists`); again.Code != 1 || n != len(everyName) {
		t.Errorf("made again: status %d, %d of %d are there already: %s", again.Code, n, len(everyName), again.Stderr)
	}
	all("", "get", "-o", "name")
	shown, described := w.Kubectl("get", "-f", file), w.Kubectl("describe", "-f", file)
	for _, kind := range everyName {
		if !strings.Contains(shown, "\n"+kind+"/every ") {
			t.Errorf("get -f shows no %s:\n%s", kind, shown)
		}
	}
	if n := strings.Count("\n"+described, "\nName: "); n != len(everyName) {
		t.Errorf("describe -f describes %d of %d:\n%s", n, len(everyName), described)
	}
	all("labeled", "label", "tier=one")
	w.refuses("", []string{"'tier' already has a value (one), and --overwrite is false"}, "label", "-f", file,
		"tier=two")
	all("labeled", "label", "tier=two", "--overwrite")
	all("condition met", "wait", "--for=jsonpath={.metadata.labels.tier}=two")
	all("unlabeled", "label", "tier-")
	all("annotated", "annotate", "note=of interest")
	all("patched", "patch", "-p", `{"metadata":{"annotations":{"note":null}}}`)
	all("condition met", "wait", "--for=jsonpath={.metadata.name}=every")
	applyByTwoManagers(w, dir)
	var gone []string
	for _, kind := range everyName {
		gone = append(gone, kind+` "every" deleted from `+w.Namespace+" namespace")
	}
	w.says(strings.Join(gone, "\n"), "delete", "-f", file)
	w.says("", "get", "-f", file, "--ignore-not-found")
	w.awaitNothing("pods")
}

// applyByTwoManagers has the server apply the changed manifest, and then another one for another manager.
func applyByTwoManagers(w *World, dir string) {
	w.Helper()
	changed, other := filepath.Join(dir, "changed.yaml"), filepath.Join(dir, "other.yaml")
	differs := w.TryKubectl("", "diff", "--server-side", "-f", changed)
	if n := strings.Count(differs.Stdout, "\n+    size: small\n"); differs.Code != 1 || n != len(everyName) {
		w.Errorf("diff of a label that none has: status %d, %d of %d differ: %s%s", differs.Code, n, len(everyName),
			differs.Stdout, differs.Stderr)
	}
	w.says(each(everyName, "serverside-applied"), "apply", "--server-side", "-f", changed)
	w.says("", "diff", "--server-side", "-f", changed)
	asOther := []string{"apply", "--server-side", "--field-manager=other", "-f", other}
	refused := w.TryKubectl("", asOther...)
	const conflict = `Apply failed with 1 conflict: conflict with "kubectl": .metadata.labels.size`
	if n := strings.Count(refused.Stderr, conflict); refused.Code != 1 || n != len(everyName) {
		w.Errorf("applied for another: status %d, %d of %d conflict: %s", refused.Code, n, len(everyName),
			refused.Stderr)
	}
	w.says(each(everyName, "serverside-applied"), append(asOther, "--force-conflicts")...)
	w.says(each(everyName, "condition met"), "wait", "-f", other, "--for=jsonpath={.metadata.labels.size}=large")
}
