package containerconfig

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"
)

// secured returns the security context of a container with the context own, in a Pod with the context pod.
func secured(t *testing.T, pod *corev1.PodSecurityContext,
	own *corev1.SecurityContext) *cri.LinuxContainerSecurityContext {
	t.Helper()
	return container(t, named("web", func(s *corev1.PodSpec) {
		s.SecurityContext, s.Containers[0].SecurityContext = pod, own
	}), nil).Linux.SecurityContext
}

// POD-063: nothing is granted unrequested: a container without a context is neither privileged nor in a group.
func TestSecurityOfSilence(t *testing.T) {
	for name, s := range map[string]*cri.LinuxContainerSecurityContext{
		"nothing": secured(t, nil, nil), "empty": secured(t, &corev1.PodSecurityContext{}, &corev1.SecurityContext{}),
	} {
		if s.Privileged || s.NoNewPrivs || s.ReadonlyRootfs || s.RunAsUser != nil || s.RunAsUsername != "" ||
			s.RunAsGroup != nil || len(s.SupplementalGroups) != 0 || s.Capabilities != nil || s.SelinuxOptions != nil ||
			s.Apparmor != nil || s.SupplementalGroupsPolicy != cri.SupplementalGroupsPolicy_Merge {
			t.Errorf("%s: %v", name, s)
		}
		for _, path := range []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware",
			"/sys/devices/virtual/powercap"} {
			if !slices.Contains(s.MaskedPaths, path) {
				t.Errorf("%s: %s can be read", name, path)
			}
		}
		for _, path := range []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"} {
			if !slices.Contains(s.ReadonlyPaths, path) {
				t.Errorf("%s: %s can be written", name, path)
			}
		}
	}
}

// POD-063: a container's fields win over its Pod's, each separately; zero and false count as set.
func TestOwnOverPod(t *testing.T) {
	pod := &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](7), RunAsGroup: ptr.To[int64](8),
		RunAsNonRoot:    ptr.To(true),
		SELinuxOptions:  &corev1.SELinuxOptions{User: "u", Role: "r", Type: "t", Level: "l"},
		SeccompProfile:  &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}}
	s := secured(t, pod, nil)
	if s.RunAsUser.GetValue() != 7 || s.RunAsGroup.GetValue() != 8 || s.SelinuxOptions.String() !=
		(&cri.SELinuxOption{User: "u", Role: "r", Type: "t", Level: "l"}).String() ||
		s.Seccomp.ProfileType != cri.SecurityProfile_RuntimeDefault ||
		s.Apparmor.ProfileType != cri.SecurityProfile_RuntimeDefault {
		t.Errorf("the Pod's: %v", s)
	}
	own := &corev1.SecurityContext{RunAsUser: ptr.To[int64](0), RunAsGroup: ptr.To[int64](0),
		RunAsNonRoot:    ptr.To(false),
		SELinuxOptions:  &corev1.SELinuxOptions{Level: "mine"},
		SeccompProfile:  &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined},
		AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}}
	s = secured(t, pod, own)
	if s.RunAsUser == nil || s.RunAsUser.Value != 0 || s.RunAsGroup == nil || s.RunAsGroup.Value != 0 ||
		s.SelinuxOptions.String() != (&cri.SELinuxOption{Level: "mine"}).String() ||
		s.Seccomp.ProfileType != cri.SecurityProfile_Unconfined || s.Apparmor.ProfileType !=
		cri.SecurityProfile_Unconfined || s.Seccomp.LocalhostRef != "" || s.Apparmor.LocalhostRef != "" {
		t.Errorf("its own: %v", s)
	}
	if s := secured(t, nil, own); s.RunAsUser.GetValue() != 0 || s.RunAsUser == nil {
		t.Errorf("without a word of the Pod's: %v", s)
	}
}

// POD-063: supplemental groups, and whether those of the image count.
func TestGroups(t *testing.T) {
	strict, merge := corev1.SupplementalGroupsPolicyStrict, corev1.SupplementalGroupsPolicyMerge
	for name, row := range map[string]struct {
		pod    *corev1.PodSecurityContext
		groups []int64
		policy cri.SupplementalGroupsPolicy
	}{
		"none": {nil, nil, cri.SupplementalGroupsPolicy_Merge},
		"of the volumes": {&corev1.PodSecurityContext{FSGroup: ptr.To[int64](0)}, []int64{0},
			cri.SupplementalGroupsPolicy_Merge},
		"named": {&corev1.PodSecurityContext{SupplementalGroups: []int64{4, 3}}, []int64{4, 3},
			cri.SupplementalGroupsPolicy_Merge},
		"of both": {&corev1.PodSecurityContext{SupplementalGroups: []int64{4}, FSGroup: ptr.To[int64](5),
			SupplementalGroupsPolicy: &merge}, []int64{4, 5}, cri.SupplementalGroupsPolicy_Merge},
		"none of the image": {&corev1.PodSecurityContext{SupplementalGroups: []int64{4},
			SupplementalGroupsPolicy: &strict}, []int64{4}, cri.SupplementalGroupsPolicy_Strict},
	} {
		s := secured(t, row.pod, nil)
		if !slices.Equal(s.SupplementalGroups, row.groups) || s.SupplementalGroupsPolicy != row.policy {
			t.Errorf("%s: %v by %v, want %v by %v", name, s.SupplementalGroups, s.SupplementalGroupsPolicy, row.groups,
				row.policy)
		}
		pod := named("web", func(s *corev1.PodSpec) { s.SecurityContext = row.pod })
		whole := sandbox(t, pod).Linux.SecurityContext
		if !slices.Equal(whole.SupplementalGroups, row.groups) || whole.SupplementalGroupsPolicy != row.policy {
			t.Errorf("%s: the sandbox has %v by %v", name, whole.SupplementalGroups, whole.SupplementalGroupsPolicy)
		}
	}
	groups := make([]int64, 1, 8)
	pod := &corev1.PodSecurityContext{SupplementalGroups: groups, FSGroup: ptr.To[int64](5)}
	secured(t, pod, nil)
	if grown := groups[:2]; grown[1] != 0 || len(pod.SupplementalGroups) != 1 {
		t.Error("the Pod's own list was written to")
	}
}

// POD-063: the user and group if the container, its Pod and its image differ.
func TestUserAndGroup(t *testing.T) {
	seven, www := ImageUser{UID: ptr.To[int64](7)}, ImageUser{Name: "www"}
	for _, row := range []struct {
		name        string
		user, group *int64
		image       ImageUser
		wantUser    *int64
		wantName    string
		wantGroup   *int64
	}{
		{"nobody says", nil, nil, ImageUser{}, nil, "", nil},
		{"the image's number", nil, nil, seven, ptr.To[int64](7), "", nil},
		{"the image's name", nil, nil, www, nil, "www", nil},
		{"the Pod's user over the image's", ptr.To[int64](1), nil, www, ptr.To[int64](1), "", nil},
		{"root over the image's", ptr.To[int64](0), nil, seven, ptr.To[int64](0), "", nil},
		{"a group with the image's number", nil, ptr.To[int64](3), seven, ptr.To[int64](7), "", ptr.To[int64](3)},
		{"a group with the image's name", nil, ptr.To[int64](3), www, nil, "www", ptr.To[int64](3)},
		{"a group alone goes with root", nil, ptr.To[int64](3), ImageUser{}, ptr.To[int64](0), "", ptr.To[int64](3)},
		{"root's group alone", nil, ptr.To[int64](0), ImageUser{}, ptr.To[int64](0), "", ptr.To[int64](0)},
		{"a user and a group", ptr.To[int64](1), ptr.To[int64](2), seven, ptr.To[int64](1), "", ptr.To[int64](2)},
	} {
		pod := named("web", func(s *corev1.PodSpec) {
			s.SecurityContext = &corev1.PodSecurityContext{RunAsUser: row.user, RunAsGroup: row.group}
		})
		s := container(t, pod, func(in *ContainerInput) { in.Image = row.image }).Linux.SecurityContext
		if !sameID(s.RunAsUser, row.wantUser) || s.RunAsUsername != row.wantName ||
			!sameID(s.RunAsGroup, row.wantGroup) {
			t.Errorf("%s: user %v or %q, group %v", row.name, s.RunAsUser, s.RunAsUsername, s.RunAsGroup)
		}
		// A sandbox does not use the Pod's images: a group needs the Pod's user.
		whole, wantGroup := sandbox(t, pod).Linux.SecurityContext, row.group
		if row.user == nil {
			wantGroup = nil
		}
		if !sameID(whole.RunAsUser, row.user) || !sameID(whole.RunAsGroup, wantGroup) {
			t.Errorf("%s: the sandbox has user %v, group %v", row.name, whole.RunAsUser, whole.RunAsGroup)
		}
	}
}

func sameID(got *cri.Int64Value, want *int64) bool {
	return (got == nil) == (want == nil) && (got == nil || got.Value == *want)
}

// POD-063: profiles of the runtime, profiles on the node, and none.
func TestProfiles(t *testing.T) {
	none := &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: "Unconfined"},
		AppArmorProfile: &corev1.AppArmorProfile{Type: "Unconfined"}}
	if s := secured(t, nil, none); s.Seccomp.ProfileType != cri.SecurityProfile_Unconfined ||
		s.Apparmor.ProfileType != cri.SecurityProfile_Unconfined {
		t.Errorf("none: %v, %v", s.Seccomp, s.Apparmor)
	}
	local := &corev1.SecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: "Localhost",
		LocalhostProfile: ptr.To("mine")},
		SeccompProfile: &corev1.SeccompProfile{Type: "Localhost", LocalhostProfile: ptr.To("mine.json")}}
	if s := secured(t, nil, local); s.Seccomp.ProfileType != cri.SecurityProfile_Localhost ||
		s.Seccomp.LocalhostRef != "/seccomp/mine.json" || s.Apparmor.ProfileType != cri.SecurityProfile_Localhost ||
		s.Apparmor.LocalhostRef != "mine" {
		t.Errorf("of the node: %v, %v", s.Seccomp, s.Apparmor)
	}
	pod := named("web", func(s *corev1.PodSpec) {
		s.Containers[0].SecurityContext = &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{
			Type: "Localhost", LocalhostProfile: ptr.To("")}}
	})
	if config, err := Container(input(pod, nil)); err == nil || config != nil {
		t.Errorf("a profile without a name: %v, %v", config, err)
	}
	silent := container(t, named("web", nil), func(in *ContainerInput) { in.SeccompDefault = true })
	if got := silent.Linux.SecurityContext.Seccomp; got.ProfileType != cri.SecurityProfile_RuntimeDefault {
		t.Errorf("where the node has a default: %v", got)
	}
	// The sandbox's own process never needs more than the runtime's profile allows.
	if got := sandbox(t, named("web", nil)).Linux.SecurityContext.Seccomp; got.ProfileType !=
		cri.SecurityProfile_RuntimeDefault {
		t.Errorf("the sandbox: %v", got)
	}
}

// POD-063: capabilities are what the container requests, no more and no fewer.
func TestRights(t *testing.T) {
	for name, row := range map[string]struct {
		own  corev1.SecurityContext
		want *cri.LinuxContainerSecurityContext
	}{
		"privileged": {corev1.SecurityContext{Privileged: ptr.To(true)},
			&cri.LinuxContainerSecurityContext{Privileged: true}},
		"not privileged": {corev1.SecurityContext{Privileged: ptr.To(false)}, &cri.LinuxContainerSecurityContext{}},
		"no escalation": {corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false)},
			&cri.LinuxContainerSecurityContext{NoNewPrivs: true}},
		"escalation": {corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(true)},
			&cri.LinuxContainerSecurityContext{}},
		"read-only root": {corev1.SecurityContext{ReadOnlyRootFilesystem: ptr.To(true)},
			&cri.LinuxContainerSecurityContext{ReadonlyRootfs: true}},
		"writable root": {corev1.SecurityContext{ReadOnlyRootFilesystem: ptr.To(false)},
			&cri.LinuxContainerSecurityContext{}},
		"capabilities": {corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"A", "B"},
			Drop: []corev1.Capability{"ALL"}}}, &cri.LinuxContainerSecurityContext{Capabilities: &cri.Capability{
			AddCapabilities: []string{"A", "B"}, DropCapabilities: []string{"ALL"}}}},
		"no capabilities": {corev1.SecurityContext{Capabilities: &corev1.Capabilities{}},
			&cri.LinuxContainerSecurityContext{Capabilities: &cri.Capability{}}},
	} {
		s := secured(t, nil, &row.own)
		if s.Privileged != row.want.Privileged || s.NoNewPrivs != row.want.NoNewPrivs || s.ReadonlyRootfs !=
			row.want.ReadonlyRootfs || !reflect.DeepEqual(s.Capabilities, row.want.Capabilities) {
			t.Errorf("%s: %v, want %v", name, s, row.want)
		}
		pod := named("web", func(s *corev1.PodSpec) { s.Containers[0].SecurityContext = &row.own })
		if got := sandbox(t, pod).Linux.SecurityContext.Privileged; got != row.want.Privileged {
			t.Errorf("%s: the sandbox is privileged: %v", name, got)
		}
	}
	init := named("web", func(s *corev1.PodSpec) {
		s.InitContainers = []corev1.Container{{}, {SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)}}}
	})
	if !sandbox(t, init).Linux.SecurityContext.Privileged {
		t.Error("a privileged init container finds no place in its sandbox")
	}
}
