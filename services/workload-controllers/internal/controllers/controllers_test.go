package controllers

import (
	"os"
	"slices"
	"strings"
	"testing"

	"keelson.dev/kit/controller"
)

func names(registrations []controller.Registration) []string {
	var names []string
	for _, r := range registrations {
		names = append(names, r.Name)
	}
	return names
}

// A controller is listed under the name of its folder.
func TestNamesAreThoseOfTheFolders(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, entry := range entries {
		if entry.IsDir() {
			folders = append(folders, entry.Name())
		}
	}
	if got := Names(); !slices.Equal(got, folders) {
		t.Errorf("the controllers are %v, the folders %v", got, folders)
	}
	got := names(All(Options{Concurrent: 1}))
	if slices.ContainsFunc([]string{"csrsigning", "nodeipam", "rootca", "trustbundle"}, func(name string) bool {
		return slices.Contains(got, name)
	}) || len(got) != len(folders)-4 {
		t.Errorf("without a bundle, a range and an authority there are %v", got)
	}
}

// Every controller answers keel explain.
func TestEachExplains(t *testing.T) {
	for _, r := range All(Whole()) {
		if len(r.Explains) == 0 {
			t.Errorf("%s tells about no kind of objects", r.Name)
		}
	}
}

func TestSelect(t *testing.T) {
	all := All(Whole())
	without := func(left ...string) string {
		return strings.Join(slices.DeleteFunc(names(all), func(name string) bool {
			return slices.Contains(left, name)
		}), " ")
	}
	for asked, want := range map[string]string{
		"*":                         without(),
		"deployment":                "deployment",
		"replicaset,deployment":     "deployment replicaset",
		"*,-rootca":                 without("rootca"),
		"deployment,-deployment":    "",
		"-deployment,*,-replicaset": without("deployment", "replicaset"),
	} {
		if got := strings.Join(names(Select(all, strings.Split(asked, ","))), " "); got != want {
			t.Errorf("%s selects %q, want %q", asked, got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	for name, valid := range map[string]bool{"*": true, "deployment": true, "-replicaset": true, "jobs": false,
		"-jobs": false, "": false} {
		err := Validate([]string{name})
		if (err == nil) != valid {
			t.Errorf("%q: %v", name, err)
		}
		if err != nil && (!strings.Contains(err.Error(), `"`+name+`"`) || !strings.Contains(err.Error(),
			"serviceaccount")) {
			t.Errorf("the message says neither what is wrong nor what is allowed: %v", err)
		}
	}
}

// Every controller declares its rules; none has rights to Secrets or to everything, except that quotas count objects
// of any kind (decision 0008), and that in the metrics API groups the resources are the metrics' names.
func TestRulesAreDeclared(t *testing.T) {
	for _, r := range All(Whole()) {
		if len(r.Rules) == 0 {
			t.Errorf("%s declares nothing", r.Name)
		}
		for _, rule := range r.Rules {
			if r.Name == "resourcequota" && slices.Equal(rule.Verbs, []string{"list", "watch"}) {
				continue
			}
			metrics := !slices.ContainsFunc(rule.APIGroups, func(group string) bool {
				return group != "custom.metrics.k8s.io" && group != "external.metrics.k8s.io"
			})
			if slices.Contains(rule.Verbs, "*") || slices.Contains(rule.Resources, "*") && !metrics ||
				slices.Contains(rule.Resources, "secrets") {
				t.Errorf("%s declares %v", r.Name, rule)
			}
		}
	}
}

// A controller that creates objects which a quota may refuse continues when the quota changes.
func TestWhoCreatesWaitsForQuotas(t *testing.T) {
	for _, r := range All(Whole()) {
		creates, waits := false, false
		for _, rule := range r.Rules {
			// PersistentVolumes, VolumeAttachments and ClusterTrustBundles are cluster-scoped, no controller waits for
			// events, and reviews are not stored.
			if slices.Contains(rule.Verbs, "create") && !slices.Contains(rule.Resources, "events") &&
				!slices.Contains(rule.Resources, "clustertrustbundles") &&
				!slices.Contains(rule.Resources, "persistentvolumes") &&
				!slices.Contains(rule.Resources, "subjectaccessreviews") &&
				!slices.Contains(rule.Resources, "volumeattachments") {
				creates = true
			}
			waits = waits || slices.Contains(rule.Resources, "resourcequotas") && slices.Contains(rule.Verbs, "watch")
		}
		if creates != waits {
			t.Errorf("%s: creates objects: %t, waits for quotas: %t", r.Name, creates, waits)
		}
	}
}
