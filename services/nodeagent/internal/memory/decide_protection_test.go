package memory

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

func throttling(factor string) func(*Settings) {
	return func(s *Settings) { s.ThrottlingFactor = factor }
}

func reserving(s *Settings) { s.ReservationPolicy = reserveTiered }

// SAF-093: on a machine with pages of 10 bytes, of which Pods may request 2000.
func TestHighOf(t *testing.T) {
	burstable := corev1.PodQOSBurstable
	for _, row := range []struct {
		name           string
		factor         string
		class          corev1.PodQOSClass
		request, limit int64
		whole          int64
		want           int64
	}{
		{"of the way to the limit", "0.6", burstable, 500, 1000, none, 800},
		{"in whole pages", "0.5", burstable, 500, 1019, none, 750},
		{"a page more", "0.5", burstable, 500, 1020, none, 760},
		{"the limit", "1", burstable, 500, 1000, none, 1000},
		{"no limit", "0.9", burstable, 1000, none, none, 1900},
		{"that of the Pod", "0.9", burstable, 0, none, 1000, 900},
		{"no request", "0.9", burstable, none, 1000, none, 900},
		{"no way to the limit", "0.9", burstable, 1000, 1000, none, 0},
		{"all that there is", "0.9", burstable, 2000, none, none, 0},
		{"a byte less", "1", burstable, 1999, none, none, 2000},
		{"less than a page beyond the request", "0.5", burstable, 1000, 1019, none, 0},
		{"a page beyond the request", "0.5", burstable, 1000, 1020, none, 1010},
		{"best effort", "0.9", corev1.PodQOSBestEffort, none, none, none, 1800},
		{"guaranteed", "0.9", corev1.PodQOSGuaranteed, 500, 1000, none, 0},
		{"no factor", "", burstable, 500, 1000, none, 0},
	} {
		pod := podOf(row.class, container(row.request, row.limit))
		if row.whole != none {
			pod.Spec.Resources = &corev1.ResourceRequirements{Limits: list(row.whole)}
		}
		r := rulesOf(t, Machine{Allocatable: 2000, PageSize: 10}, throttling(row.factor))
		if got := r.HighOf(pod, &pod.Spec.Containers[0]); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

// A container is throttled above its request, and at its limit at the latest.
func TestHighLiesBetweenRequestAndLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rulesOf(t, Machine{Allocatable: 1 << 40, PageSize: 4096}, throttling("0.9"))
		r.factor = rapid.Float64Range(0.0001, 1).Draw(t, "factor")
		limit := rapid.Int64Range(1, 1<<40).Draw(t, "limit")
		request := rapid.Int64Range(0, limit).Draw(t, "request")
		pod := podOf(corev1.PodQOSBurstable, container(request, limit))
		if got := r.HighOf(pod, &pod.Spec.Containers[0]); got != 0 && (got <= request || got > limit || got%4096 != 0) {
			t.Fatalf("%d, request %d, limit %d", got, request, limit)
		}
	})
}

// SAF-093: the cgroups above a Pod are protected as far as the Pod is.
func TestProtection(t *testing.T) {
	ended := podOf(corev1.PodQOSGuaranteed, container(7, 7))
	ended.Status.Phase = corev1.PodSucceeded
	heavy := podOf(corev1.PodQOSBurstable, container(10, none), container(20, none))
	heavy.Spec.Overhead = list(5)
	pods := []*corev1.Pod{podOf(corev1.PodQOSGuaranteed, container(100, 100)), heavy,
		podOf(corev1.PodQOSBurstable, container(200, 300)), podOf(corev1.PodQOSBestEffort, container(none, none)),
		ended}
	r := rulesOf(t, Machine{}, reserving)
	for i, want := range []Protection{{Min: 100}, {Low: 35}, {Low: 200}, {}} {
		if got := r.ProtectPod(pods[i]); got != want {
			t.Errorf("Pod %d: %+v, want %+v", i, got, want)
		}
	}
	if all, burstable := r.ProtectAll(pods); all != (Protection{Min: 335}) || burstable != (Protection{Low: 235}) {
		t.Errorf("all %+v, burstable %+v", all, burstable)
	}
	off := rulesOf(t, Machine{}, func(*Settings) {})
	if all, burstable := off.ProtectAll(pods); all != (Protection{}) || burstable != (Protection{}) {
		t.Errorf("under None: all %+v, burstable %+v", all, burstable)
	}
}

// A container's settings are complete: they replace those of a former size.
func TestUnified(t *testing.T) {
	all := func(s *Settings) {
		swapping(s)
		throttling("0.5")(s)
		reserving(s)
	}
	machine := Machine{Memory: 4000, Swap: 2000, Allocatable: 2000, PageSize: 10}
	for _, row := range []struct {
		name           string
		set            func(*Settings)
		class          corev1.PodQOSClass
		request, limit int64
		want           map[string]string
	}{
		{"nothing set", func(*Settings) {}, corev1.PodQOSBurstable, 500, 1000,
			map[string]string{"memory.oom.group": "1", "memory.swap.max": "0"}},
		{"single kills", func(s *Settings) { s.SingleProcessOOMKill = "true" }, corev1.PodQOSBurstable, 500, 1000,
			map[string]string{"memory.swap.max": "0"}},
		{"group kills", func(s *Settings) { s.SingleProcessOOMKill = "false" }, corev1.PodQOSBurstable, 500, 1000,
			map[string]string{"memory.oom.group": "1", "memory.swap.max": "0"}},
		{"all, burstable", all, corev1.PodQOSBurstable, 500, 1000, map[string]string{"memory.oom.group": "1",
			"memory.swap.max": "250", "memory.high": "750", "memory.min": "0", "memory.low": "500"}},
		{"all, guaranteed", all, corev1.PodQOSGuaranteed, 500, 500, map[string]string{"memory.oom.group": "1",
			"memory.swap.max": "0", "memory.high": "max", "memory.min": "500", "memory.low": "0"}},
		{"all, best effort", all, corev1.PodQOSBestEffort, none, none, map[string]string{"memory.oom.group": "1",
			"memory.swap.max": "0", "memory.high": "1000", "memory.min": "0", "memory.low": "0"}},
	} {
		pod := podOf(row.class, container(row.request, row.limit))
		if got := rulesOf(t, machine, row.set).Unified(pod, &pod.Spec.Containers[0]); !maps.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
	pod := podOf(corev1.PodQOSBurstable, container(500, 1000))
	noLimit, err := rulesOf(t, machine, func(*Settings) {}).OnKernel(false)
	if err != nil {
		t.Fatal(err)
	}
	if got := noLimit.Unified(pod, &pod.Spec.Containers[0]); len(got) != 1 {
		t.Errorf("on a kernel without a limit of swap: %v", got)
	}
	if got := (Rules{}).Unified(pod, &pod.Spec.Containers[0]); got != nil {
		t.Errorf("on version 1: %v", got)
	}
}
