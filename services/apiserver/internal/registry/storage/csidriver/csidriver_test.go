package csidriver

import (
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func driver(edit func(*storagev1.CSIDriverSpec)) *storagev1.CSIDriver {
	d := &storagev1.CSIDriver{}
	edit(&d.Spec)
	Default(d)
	return d
}

func plain(*storagev1.CSIDriverSpec) {}

func tokens(requests ...storagev1.TokenRequest) func(*storagev1.CSIDriverSpec) {
	return func(s *storagev1.CSIDriverSpec) { s.TokenRequests = requests }
}

func TestDefault(t *testing.T) {
	spec := driver(plain).Spec
	if !*spec.AttachRequired || *spec.PodInfoOnMount || *spec.StorageCapacity || *spec.RequiresRepublish ||
		*spec.SELinuxMount || *spec.FSGroupPolicy != "ReadWriteOnceWithFSType" ||
		len(spec.VolumeLifecycleModes) != 1 || spec.VolumeLifecycleModes[0] != "Persistent" {
		t.Errorf("%+v", spec)
	}
}

func TestName(t *testing.T) {
	for name, valid := range map[string]bool{
		"Disk.example.com": true, strings.Repeat("a", 63): true, strings.Repeat("a", 64): false, "a_b": false,
	} {
		if got := validName(name, false); (len(got) == 0) != valid {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestValidate(t *testing.T) {
	lives := func(seconds int64) func(*storagev1.CSIDriverSpec) {
		return tokens(storagev1.TokenRequest{ExpirationSeconds: &seconds})
	}
	counts := func(seconds int64) func(*storagev1.CSIDriverSpec) {
		return func(s *storagev1.CSIDriverSpec) { s.NodeAllocatableUpdatePeriodSeconds = &seconds }
	}
	for _, row := range []struct {
		name string
		edit func(*storagev1.CSIDriverSpec)
		want []string
	}{
		{"plain", plain, nil},
		{"policy", func(s *storagev1.CSIDriverSpec) { s.FSGroupPolicy = ptr.To(storagev1.FSGroupPolicy("Maybe")) },
			[]string{
				`spec.fsGroupPolicy: Unsupported value: "Maybe": supported values: "File", "None", "ReadWriteOnce`}},
		{"mode", func(s *storagev1.CSIDriverSpec) { s.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{"Brief"} },
			[]string{`spec.volumeLifecycleModes[0]: Unsupported value: "Brief": supported values: "Ephemeral", "Pers`}},
		{"one audience twice", tokens(storagev1.TokenRequest{Audience: "a"}, storagev1.TokenRequest{Audience: "a"}),
			[]string{`spec.tokenRequests[1].audience: Duplicate value: "a"`}},
		{"shortest token", lives(600), nil},
		{"shorter", lives(599),
			[]string{"spec.tokenRequests[0].expirationSeconds: Invalid value: 599: must be between " +
				"600 and 4294967296, inclusive"}},
		{"longest token", lives(1 << 32), nil},
		{"longer", lives(1<<32 + 1), []string{"spec.tokenRequests[0].expirationSeconds: Invalid value: 4294967297"}},
		{"count often", counts(10), nil},
		{"count more often", counts(9), []string{"spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must be"}},
		{"tokens in secrets", func(s *storagev1.CSIDriverSpec) {
			s.ServiceAccountTokenInSecrets = ptr.To(true)
			s.TokenRequests = []storagev1.TokenRequest{{}}
		}, nil},
		{"no tokens in secrets", func(s *storagev1.CSIDriverSpec) { s.ServiceAccountTokenInSecrets = ptr.To(true) },
			[]string{"spec.serviceAccountTokenInSecrets: Invalid value: true: must not be specified without tokenReq"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(driver(row.edit)), row.want...) })
	}
}

func TestValidateUpdate(t *testing.T) {
	fieldtest.Check(t, ValidateUpdate(driver(func(s *storagev1.CSIDriverSpec) {
		s.AttachRequired = ptr.To(false)
		s.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{"Ephemeral"}
	}), driver(plain)),
		"spec.attachRequired: Invalid value: false: field is immutable",
		`spec.volumeLifecycleModes: Invalid value: ["Ephemeral"]: field is immutable`)
	fieldtest.Check(t, ValidateUpdate(driver(func(s *storagev1.CSIDriverSpec) {
		s.StorageCapacity, s.PodInfoOnMount = ptr.To(true), ptr.To(true)
	}), driver(plain)))
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
