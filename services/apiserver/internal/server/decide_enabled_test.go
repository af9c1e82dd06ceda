package server

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What is told of a setting that names no version, and of one that names nothing.
const (
	thereAre  = "there are apps/v1, batch/v1, batch/v1beta1, batch/v2alpha1, v1"
	noSetting = "is none of api/all, api/ga, api/beta, api/alpha, VERSION, GROUP/VERSION and GROUP/VERSION/RESOURCE"
)

func TestDecideEnabled(t *testing.T) {
	version := func(group, version string) schema.GroupVersion {
		return schema.GroupVersion{Group: group, Version: version}
	}
	core, apps, batch := version("", "v1"), version("apps", "v1"), version("batch", "v1")
	beta, alpha := version("batch", "v1beta1"), version("batch", "v2alpha1")
	all := []schema.GroupVersion{core, apps, batch, beta, alpha}
	for _, row := range []struct {
		name     string
		settings map[string]string
		needed   []schema.GroupVersion
		off      []schema.GroupVersion
		without  []schema.GroupVersionResource
		wrong    string
	}{
		{name: "nothing said"},
		{name: "one off", settings: map[string]string{"apps/v1": "false"}, off: []schema.GroupVersion{apps}},
		{name: "one named", settings: map[string]string{"apps/v1": ""}},
		{name: "the core group, both ways", settings: map[string]string{"v1": "false", "/v1": "false"},
			off: []schema.GroupVersion{core}},
		{name: "beta", settings: map[string]string{"api/beta": "false"}, off: []schema.GroupVersion{beta}},
		{name: "alpha", settings: map[string]string{"api/alpha": "false"}, off: []schema.GroupVersion{alpha}},
		{name: "all but", settings: map[string]string{"api/all": "false", "v1": "true", "batch/v1beta1": "true"},
			needed: []schema.GroupVersion{core}, off: []schema.GroupVersion{apps, batch, alpha}},
		{name: "a class over all", settings: map[string]string{"api/all": "false", "api/ga": "true"},
			off: []schema.GroupVersion{beta, alpha}},
		{name: "a version over its class", settings: map[string]string{"api/ga": "false", "apps/v1": "true"},
			off: []schema.GroupVersion{core, batch}},
		{name: "a resource", settings: map[string]string{"batch/v1/jobs": "false", "apps/v1/deployments": "true"},
			without: []schema.GroupVersionResource{batch.WithResource("jobs")}},
		{name: "no bool", settings: map[string]string{"apps/v1": "off"},
			wrong: `apps/v1: "off" is neither true nor false`},
		{name: "no bool for all", settings: map[string]string{"api/all": "1.0"},
			wrong: `api/all: "1.0" is neither true nor false`},
		{name: "unknown group", settings: map[string]string{"shop/v1": "true"},
			wrong: "shop/v1: there is no version shop/v1; " + thereAre},
		{name: "unknown version", settings: map[string]string{"apps/v2": "false"},
			wrong: "apps/v2: there is no version apps/v2; " + thereAre},
		{name: "unknown class", settings: map[string]string{"api/legacy": "true"},
			wrong: "api/legacy: there is no version api/legacy; " + thereAre},
		{name: "four parts", settings: map[string]string{"apps/v1/deployments/scale": "false"},
			wrong: "apps/v1/deployments/scale: " + noSetting},
		{name: "no version", settings: map[string]string{"apps/": "false"}, wrong: "apps/: " + noSetting},
		{name: "what is needed", settings: map[string]string{"api/all": "false", "batch/v1": "true"},
			needed: []schema.GroupVersion{core, batch, apps},
			wrong:  "apps/v1, v1 cannot be off: the apiserver itself uses it"},
		{name: "a resource of what is needed", settings: map[string]string{"v1/pods": "false"},
			needed: []schema.GroupVersion{core}, wrong: "v1/pods: there is no version v1/pods; " + thereAre},
		{name: "a resource of what is needed, in full", settings: map[string]string{"/v1/pods": "false"},
			needed: []schema.GroupVersion{core}, wrong: "v1/pods cannot be off: the apiserver itself uses v1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := decideEnabled(row.settings, all, row.needed)
			if row.wrong != "" {
				if err == nil || err.Error() != row.wrong {
					t.Errorf("%v, want %s", err, row.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range all {
				if got.versions[v] == slices.Contains(row.off, v) {
					t.Errorf("%s: served %t", v, got.versions[v])
				}
			}
			for _, r := range row.without {
				if !got.without[r] {
					t.Errorf("%s is served", r)
				}
			}
			if len(got.without) != len(row.without) {
				t.Errorf("not served are %v", got.without)
			}
		})
	}
}
