package runtimeclass

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func handled(by string) *nodev1.RuntimeClass { return &nodev1.RuntimeClass{Handler: by} }

func costs(amount string) *nodev1.RuntimeClass {
	c := handled("runc")
	c.Overhead = &nodev1.Overhead{PodFixed: corev1.ResourceList{"memory": resource.MustParse(amount)}}
	return c
}

func placed(label string, toleration corev1.Toleration) *nodev1.RuntimeClass {
	c := handled("runc")
	c.Scheduling = &nodev1.Scheduling{NodeSelector: map[string]string{"kind": label},
		Tolerations: []corev1.Toleration{toleration}}
	return c
}

func TestValidate(t *testing.T) {
	fieldtest.Check(t, Validate(handled(strings.Repeat("r", 63))))
	fieldtest.Check(t, Validate(handled(strings.Repeat("r", 64))), `handler: Invalid value: "rrr`)
	fieldtest.Check(t, Validate(handled("")), "handler: Required value")
	fieldtest.Check(t, Validate(handled("run.c")), `handler: Invalid value: "run.c"`)
	fieldtest.Check(t, Validate(costs("0")))
	fieldtest.Check(t, Validate(costs("-1")), `overhead.podFixed[memory]: Invalid value: "-1": must be greater than or`)
	fieldtest.Check(t, Validate(placed("vm", corev1.Toleration{Key: "vm", Operator: "Exists"})))
	fieldtest.Check(t, Validate(placed("a b", corev1.Toleration{Operator: "Equal"})),
		`scheduling.nodeSelector: Invalid value: "a b"`, "scheduling.tolerations[0].operator: Invalid value")
}

func TestValidateUpdate(t *testing.T) {
	fieldtest.Check(t, ValidateUpdate(costs("1"), handled("runc")))
	fieldtest.Check(t, ValidateUpdate(handled("runsc"), handled("runc")),
		`handler: Invalid value: "runsc": field is immutable`)
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
