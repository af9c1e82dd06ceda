package integration

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	podgc "keelson.dev/services/podgc/inproc"
	workloads "keelson.dev/services/workload-controllers/inproc"
)

// usual are the controllers of kube-controller-manager, up to v1.37.
var usual = strings.Fields(`
	bootstrap-signer-controller certificatesigningrequest-approving-controller
	certificatesigningrequest-cleaner-controller certificatesigningrequest-signing-controller
	cloud-node-lifecycle-controller clusterrole-aggregation-controller cronjob-controller daemonset-controller
	deployment-controller device-taint-eviction-controller disruption-controller endpoints-controller
	endpointslice-controller endpointslice-mirroring-controller ephemeral-volume-controller
	garbage-collector-controller horizontal-pod-autoscaler-controller job-controller
	kube-apiserver-serving-clustertrustbundle-publisher-controller legacy-serviceaccount-token-cleaner-controller
	namespace-controller node-ipam-controller node-lifecycle-controller node-route-controller
	persistentvolume-attach-detach-controller persistentvolume-binder-controller
	persistentvolume-expander-controller persistentvolume-protection-controller
	persistentvolumeclaim-protection-controller pod-garbage-collector-controller
	podcertificaterequest-cleaner-controller podgroup-protection-controller replicaset-controller
	replicationcontroller-controller resourceclaim-controller resourcepoolstatusrequest-controller
	resourcequota-controller root-ca-certificate-publisher-controller selinux-warning-controller
	service-cidr-controller service-lb-controller serviceaccount-controller serviceaccount-token-controller
	statefulset-controller storage-version-migrator-controller storageversion-garbage-collector-controller
	taint-eviction-controller token-cleaner-controller ttl-after-finished-controller ttl-controller
	validatingadmissionpolicy-status-controller volumeattributesclass-protection-controller`)

// line is a line of the table: a controller, the daemon that does its work, which of the daemon's, and the rest.
var line = regexp.MustCompile("^\\| `([a-z0-9-]+)` \\| ([a-z-]+)(?: `([a-z]+)`)? \\| (.*) ?\\|$")

// TestControllersAreDocumented: docs/reference/controllers.md says of each controller of the usual control plane who
// does its work here, and leaves out nothing that the daemons do. Where no one does, or a daemon without controllers,
// it says why or how.
func TestControllersAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/controllers.md")
	if err != nil {
		t.Fatal(err)
	}
	var controllers []string
	ours := map[string][]string{}
	for row := range strings.Lines(string(text)) {
		if !strings.HasPrefix(row, "| `") {
			continue
		}
		m := line.FindStringSubmatch(strings.TrimSpace(row))
		if m == nil {
			t.Errorf("not of the form of the table: %s", row)
			continue
		}
		controller, daemon, name, remark := m[1], m[2], m[3], strings.TrimSpace(m[4])
		controllers = append(controllers, controller)
		switch daemon {
		case "workload-controllers", "podgc":
			ours[daemon] = append(ours[daemon], name)
		case "apiserver", "nodeagent", "nobody":
			if name != "" || remark == "" {
				t.Errorf("%s: %s %q does not say how, or why: %q", controller, daemon, name, remark)
			}
		default:
			t.Errorf("%s: there is no daemon %s", controller, daemon)
		}
	}
	if !slices.Equal(controllers, usual) {
		t.Errorf("the table has %q, want %q", controllers, usual)
	}
	for daemon, want := range map[string][]string{"workload-controllers": workloads.Controllers(),
		"podgc": podgc.Collectors()} {
		slices.Sort(ours[daemon])
		if !slices.Equal(ours[daemon], slices.Sorted(slices.Values(want))) {
			t.Errorf("%s has %q, of which the table names %q", daemon, want, ours[daemon])
		}
	}
}
