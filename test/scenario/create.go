package scenario

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"

	"keelson.dev/test/mesh"
)

// KubectlCreate makes objects of all kinds that kubectl create knows by flags alone.
//
// DEP-224
func KubectlCreate(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	certificate, key, err := cert.GenerateSelfSignedCertKey("made.example.com", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := w.directory(map[string]string{"tls.crt": string(certificate), "tls.key": string(key), "colours": "red\n",
		"variables": "SHAPE=round\nSIZE=small\n"})
	file := func(name string) string { return filepath.Join(dir, name) }
	defer w.TryKubectl("", "delete", "clusterrole,clusterrolebinding,priorityclass", w.Namespace, "--ignore-not-found")
	for _, row := range []struct{ command, made, path, want string }{
		{"configmap made --from-literal=a=b --from-file=" + file("colours"), "configmap", "{.data.a} {.data.colours}",
			"b red\n"},
		{"configmap variables --from-env-file=" + file("variables"), "configmap", "{.data.SHAPE} {.data.SIZE}",
			"round small"},
		{"secret generic made --from-literal=a=b", "secret", "{.type} {.data.a}", "Opaque Yg=="},
		{"secret tls keys --cert=" + file("tls.crt") + " --key=" + file("tls.key"), "secret", "{.type}",
			"kubernetes.io/tls"},
		{"secret docker-registry pull --docker-server=r.example.com --docker-username=ann --docker-password=x",
			"secret", "{.type}", "kubernetes.io/dockerconfigjson"},
		{"serviceaccount made", "serviceaccount", "{.metadata.name}", "made"},
		{"service clusterip made --tcp=80:8080", "service", "{.spec.type} {.spec.ports[0].targetPort}",
			"ClusterIP 8080"},
		{"service nodeport node --tcp=80 --node-port=0", "service", "{.spec.type}", "NodePort"},
		{"service loadbalancer balanced --tcp=80", "service", "{.spec.type}", "LoadBalancer"},
		{"service externalname elsewhere --external-name=example.com", "service", "{.spec.type} {.spec.externalName}",
			"ExternalName example.com"},
		{"service clusterip headless --clusterip=None", "service", "{.spec.clusterIP}", "None"},
		{"role made --verb=get,list --resource=pods,deployments.apps/scale", "role.rbac.authorization.k8s.io",
			"{.rules[*].resources[*]}", "pods deployments/scale"},
		{"rolebinding made --role=made --serviceaccount=" + w.Namespace + ":made",
			"rolebinding.rbac.authorization.k8s.io", "{.subjects[0].name}", "made"},
		{"clusterrole " + w.Namespace + " --verb=get --non-resource-url=/x", "clusterrole.rbac.authorization.k8s.io",
			"{.rules[0].nonResourceURLs[0]}", "/x"},
		{"clusterrolebinding " + w.Namespace + " --clusterrole=" + w.Namespace + " --user=ann",
			"clusterrolebinding.rbac.authorization.k8s.io", "{.subjects[0].kind}", "User"},
		{"priorityclass " + w.Namespace + " --value=7 --description=seven", "priorityclass.scheduling.k8s.io",
			"{.value} {.description}", "7 seven"},
		{"quota made --hard=pods=40", "resourcequota", "{.spec.hard.pods}", "40"},
		{"poddisruptionbudget made --selector=app=made --min-available=1", "poddisruptionbudget.policy",
			"{.spec.minAvailable}", "1"},
		{"ingress made --rule=example.com/path*=made:80", "ingress.networking.k8s.io",
			"{.spec.rules[0].http.paths[0].pathType}", "Prefix"},
		{"deployment made --image=" + HelloV1 + " --replicas=2 --port=8080", "deployment.apps", "{.spec.replicas}",
			"2"},
		{"job made --image=" + Server + " -- echo made", "job.batch", "{.spec.template.spec.containers[0].command[1]}",
			"made"},
		{"cronjob made --image=" + Server + " --schedule=@yearly -- echo made", "cronjob.batch", "{.spec.schedule}",
			"@yearly"},
		{"job copied --from=cronjob/made", "job.batch", "{.metadata.ownerReferences[0].kind}", "CronJob"},
	} {
		words := strings.Fields(row.command)
		name := words[1]
		if words[0] == "secret" || words[0] == "service" {
			name = words[2]
		}
		w.says(row.made+"/"+name+" created", append([]string{"create"}, words...)...)
		if got := w.Kubectl("get", row.made+"/"+name, "-o", "jsonpath="+row.path); got != row.want {
			t.Errorf("kubectl create %s made one of %s %q, want %q", row.command, row.path, got, row.want)
		}
	}
	if token := strings.Split(w.Kubectl("create", "token", "made", "--duration=1h"), "."); len(token) != 3 {
		t.Errorf("the token has %d parts", len(token))
	}
	w.says("deployment.apps/tried created (server dry run)", "create", "deployment", "tried", "--image="+HelloV1,
		"--dry-run=server")
	w.says("deployment.apps/tried created (dry run)", "create", "deployment", "tried", "--image="+HelloV1,
		"--dry-run=client")
	w.refuses("", []string{`deployments.apps "tried" not found`}, "get", "deployment", "tried")
	w.refuses("", []string{`serviceaccounts "nobody" not found`}, "create", "token", "nobody")
	w.refuses("", []string{`deployments.apps "made" already exists`}, "create", "deployment", "made", "--image=x")
	w.refuses("", []string{"exactly one NAME is required"}, "create", "configmap")
	w.AwaitAvailable("made", 2)
	if m.RealContainers() {
		w.Kubectl("wait", "job/made", "job/copied", "--for=condition=Complete", "--timeout=90s")
	}
}
