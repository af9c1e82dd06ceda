package cgroup_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/cgroup/cgroupfake"
	"keelson.dev/services/nodeagent/internal/memory"
)

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse(memory)}
}

func podWith(uid string, class corev1.PodQOSClass, requests, limits corev1.ResourceList) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}}},
		Status: corev1.PodStatus{QOSClass: class},
	}
}

func newTree(t *testing.T, kernel cgroup.Kernel, driver cgroup.Driver, root string) *cgroup.Tree {
	t.Helper()
	tree, err := cgroup.NewTree(kernel, driver, root, 100)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// POD-228, POD-229, POD-233: a Pod's cgroup has the Pod's effective requests and limits.
func TestLimitsOf(t *testing.T) {
	withInit := podWith("u", "", amounts("200m", "1Gi"), amounts("200m", "1Gi"))
	withInit.Spec.InitContainers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: amounts("700m",
		"2Gi"), Limits: amounts("700m", "2Gi")}}}
	oneOpen := podWith("u", "", amounts("200m", "1Gi"), amounts("200m", "1Gi"))
	oneOpen.Spec.Containers = append(oneOpen.Spec.Containers, corev1.Container{})
	for _, row := range []struct {
		name string
		pod  *corev1.Pod
		want cgroup.Limits
	}{
		{"guaranteed", podWith("u", "", amounts("1", "1Gi"), amounts("1", "1Gi")), cgroup.Limits{CPUShares: 1024,
			CPUQuota: 100000, Memory: 1 << 30, Pids: 7}},
		{"requests only", podWith("u", "", amounts("500m", "1Gi"), nil), cgroup.Limits{CPUShares: 512, Pids: 7}},
		{"nothing", podWith("u", "", nil, nil), cgroup.Limits{CPUShares: 2, Pids: 7}},
		{"larger init container", withInit, cgroup.Limits{CPUShares: 716, CPUQuota: 70000, Memory: 2 << 30, Pids: 7}},
		{"a container without limit", oneOpen, cgroup.Limits{CPUShares: 204, Pids: 7}},
	} {
		if got := cgroup.LimitsOf(row.pod, 7, memory.Rules{}); got != row.want {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
	}
}

// SAF-086: Burstable Pods together weigh what they request, however many others there are.
func TestShares(t *testing.T) {
	ended := podWith("c", corev1.PodQOSBurstable, amounts("4", "1Mi"), nil)
	ended.Status.Phase = corev1.PodSucceeded
	pods := []*corev1.Pod{
		podWith("a", corev1.PodQOSBurstable, amounts("250m", "1Mi"), nil), podWith("b", corev1.PodQOSBurstable,
			amounts("1", "1Mi"), nil), ended,
		podWith("d", corev1.PodQOSGuaranteed, amounts("2", "1Mi"), amounts("2", "1Mi")),
		podWith("e", corev1.PodQOSBestEffort, nil, nil),
	}
	if got := cgroup.SharesOf(pods, memory.Rules{}); got != (cgroup.Shares{BurstableMilli: 1250}) {
		t.Errorf("got %+v", got)
	}
	kernel := cgroupfake.New(cgroup.Legacy)
	tree := newTree(t, kernel, cgroup.Cgroupfs, "/k")
	if err := errors.Join(tree.EnsureNode(amounts("4", "1Gi")), tree.Share(nil, tree.SharesOf(pods))); err != nil {
		t.Fatal(err)
	}
	burstable, _ := kernel.Limits("/k/burstable")
	if others, ok := kernel.Limits("/k/besteffort"); burstable.CPUShares != 1280 || others.CPUShares != 2 || !ok {
		t.Errorf("burstable %+v, best effort %+v", burstable, others)
	}
}

func TestParent(t *testing.T) {
	for class, want := range map[corev1.PodQOSClass][2]string{
		corev1.PodQOSGuaranteed: {"/kubepods/pod12-ab", "kubepods-pod12_ab.slice"},
		corev1.PodQOSBurstable:  {"/kubepods/burstable/pod12-ab", "kubepods-burstable-pod12_ab.slice"},
		corev1.PodQOSBestEffort: {"/kubepods/besteffort/pod12-ab", "kubepods-besteffort-pod12_ab.slice"},
	} {
		pod := podWith("12-ab", class, nil, nil)
		kernel := cgroupfake.New(cgroup.Unified)
		if got := newTree(t, kernel, cgroup.Cgroupfs, "/kubepods").Parent(pod); got != want[0] {
			t.Errorf("%s: %s, want %s", class, got, want[0])
		}
		if got := newTree(t, kernel, cgroup.Systemd, "/kubepods").Parent(pod); got != want[1] {
			t.Errorf("%s: %s, want %s", class, got, want[1])
		}
	}
}

func TestNewTreeRefusesBadRoots(t *testing.T) {
	for _, root := range []string{"", "/", "kubepods", "/a/../b", "/a/"} {
		if _, err := cgroup.NewTree(nil, cgroup.Cgroupfs, root, 0); err == nil {
			t.Errorf("root %q was taken", root)
		}
	}
	if _, err := cgroup.NewTree(nil, "other", "/a", 0); err == nil {
		t.Error("an unknown driver was taken")
	}
}

// kernels returns the kernels on which the same behavior is checked; the root is unused on this machine.
func kernels() map[string]cgroup.Kernel {
	all := map[string]cgroup.Kernel{"fake": cgroupfake.New(cgroup.Legacy)}
	for _, driver := range drivers() {
		all[string(driver)] = cgroup.NewHost(driver)
	}
	return all
}

func forEachKernel(t *testing.T, test func(t *testing.T, kernel cgroup.Kernel, root string)) {
	for name, kernel := range kernels() {
		t.Run(name, func(t *testing.T) {
			root := fmt.Sprintf("/keelson-test-%d/%s", os.Getpid(),
				strings.ToLower(t.Name()[strings.LastIndex(t.Name(), "/")+1:]))
			t.Cleanup(func() {
				if err := kernel.Remove(filepath.Dir(root)); err != nil {
					t.Errorf("cleaning up: %v", err)
				}
			})
			test(t, kernel, root)
		})
	}
}

// POD-233, POD-165: Pods come and go; what a killed agent leaves is found again and removed.
func TestPodsComeAndGo(t *testing.T) {
	forEachKernel(t, func(t *testing.T, kernel cgroup.Kernel, root string) {
		tree := newTree(t, kernel, cgroup.Cgroupfs, root)
		pods := []*corev1.Pod{
			podWith("a", corev1.PodQOSGuaranteed, amounts("1", "64Mi"), amounts("1", "64Mi")),
			podWith("b", corev1.PodQOSBurstable, amounts("100m", "1Mi"), nil),
			podWith("c", corev1.PodQOSBestEffort, nil, nil),
		}
		for range 2 { // every step may be repeated
			if err := tree.EnsureNode(amounts("2", "1Gi")); err != nil {
				t.Fatal(err)
			}
			for _, pod := range pods {
				if err := tree.EnsurePod(pod, false); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := tree.Share(amounts("2", "1Gi"), tree.SharesOf(pods)); err != nil {
			t.Fatal(err)
		}
		if uids, err := tree.Pods(); err != nil || !slices.Equal(uids, []types.UID{"a", "b", "c"}) {
			t.Fatalf("Pods = %v, %v", uids, err)
		}
		if _, err := tree.PodUsage(pods[1]); err != nil {
			t.Errorf("usage: %v", err)
		}
		again := newTree(t, kernel, cgroup.Cgroupfs, root)
		for range 2 {
			for _, uid := range []types.UID{"a", "b"} {
				if err := again.RemovePod(uid); err != nil {
					t.Fatal(err)
				}
			}
		}
		if uids, err := again.Pods(); err != nil || !slices.Equal(uids, []types.UID{"c"}) {
			t.Errorf("Pods = %v, %v", uids, err)
		}
		if _, err := again.PodUsage(pods[0]); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("usage of a removed pod: %v", err)
		}
	})
}

// A Pod with CPUs of its own keeps its weight and its memory limit, and has no CPU quota.
func TestPodWithItsOwnCPUs(t *testing.T) {
	kernel := cgroupfake.New(cgroup.Unified)
	tree := newTree(t, kernel, cgroup.Cgroupfs, "/k")
	pod := podWith("a", corev1.PodQOSGuaranteed, amounts("1", "64Mi"), amounts("1", "64Mi"))
	for _, own := range []bool{true, false} { // in either order
		if err := tree.EnsurePod(pod, own); err != nil {
			t.Fatal(err)
		}
		want := cgroup.Limits{CPUShares: 1024, CPUQuota: 100000, Memory: 64 << 20, Pids: 100}
		if own {
			want.CPUQuota = 0
		}
		if got, ok := kernel.Limits("/k/poda"); !ok || got != want {
			t.Errorf("its own %v: %+v, want %+v", own, got, want)
		}
	}
}

func TestMode(t *testing.T) {
	if err := cgroup.Mounted(); err != nil {
		t.Fatal(err)
	}
	mode := cgroup.NewHost(cgroup.Cgroupfs).Mode()
	if !slices.Contains([]cgroup.Mode{cgroup.Legacy, cgroup.Hybrid, cgroup.Unified}, mode) {
		t.Errorf("mode %q", mode)
	}
	if tree := newTree(t, cgroupfake.New(cgroup.Unified), cgroup.Cgroupfs, "/k"); tree.Mode() != cgroup.Unified {
		t.Errorf("mode %q", tree.Mode())
	}
}

// The processes of a container are found in any QoS class: the class of a Pod that the API has forgotten is
// unknown.
func TestKillContainer(t *testing.T) {
	for driver, name := range map[cgroup.Driver]string{cgroup.Cgroupfs: "c1",
		cgroup.Systemd: "cri-containerd-c1.scope"} {
		kernel := cgroupfake.New(cgroup.Unified)
		tree, err := cgroup.NewTree(kernel, driver, "/kubepods", 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.KillContainer(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u-1"}}, "c1"); err != nil {
			t.Fatal(err)
		}
		killed := kernel.Killed()
		slices.Sort(killed)
		want := []string{"/kubepods/besteffort/podu-1/" + name, "/kubepods/burstable/podu-1/" + name,
			"/kubepods/podu-1/" + name}
		if !slices.Equal(killed, want) {
			t.Errorf("%s: killed %v, want %v", driver, killed, want)
		}
	}
}
