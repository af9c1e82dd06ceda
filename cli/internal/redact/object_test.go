package redact

import (
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const secretive = `
kind: Deployment
metadata:
  name: web
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"env":"MARKER"}'
    deployment.kubernetes.io/revision: "3"
    team.example/webhook: https://hooks.test/MARKER
    plain: MARKER
  managedFields: [{manager: kubectl, fieldsV1: {"f:MARKER": {}}}]
spec:
  replicas: 2
  paused: true
  template:
    metadata: {annotations: {plain: MARKER}}
    spec:
      containers:
      - name: c
        image: https://user:MARKER@registry.test/c:1
        command: [/c, MARKER]
        args: [--token, MARKER]
        env:
        - {name: A, value: MARKER}
        - {name: B, valueFrom: {secretKeyRef: {name: s, key: MAR}}}
        lifecycle: {preStop: {exec: {command: [curl, MARKER]}}}
        livenessProbe: {httpGet: {path: /, httpHeaders: [{name: X, value: MARKER}]}}
      volumes:
      - {name: v, csi: {driver: d, volumeAttributes: {share: MARKER}}}
      - {name: f, flexVolume: {driver: d, options: {password: MARKER}}}
status: {conditions: [{type: Available, message: "fetching https://u:MARKER@x.test failed"}]}
`

const redacted = `
kind: Deployment
metadata:
  name: web
  annotations: {deployment.kubernetes.io/revision: "3", team.example/webhook: REDACTED, plain: REDACTED}
spec:
  replicas: 2
  paused: true
  template:
    metadata: {annotations: {plain: REDACTED}}
    spec:
      containers:
      - name: c
        image: https://REDACTED@registry.test/c:1
        command: [REDACTED, REDACTED]
        args: [REDACTED, REDACTED]
        env:
        - {name: A, value: REDACTED}
        - {name: B, valueFrom: {secretKeyRef: {name: s, key: MAR}}}
        lifecycle: {preStop: {exec: {command: [REDACTED, REDACTED]}}}
        livenessProbe: {httpGet: {path: /, httpHeaders: [{name: X, value: REDACTED}]}}
      volumes:
      - {name: v, csi: {driver: d, volumeAttributes: {share: REDACTED}}}
      - {name: f, flexVolume: {driver: d, options: {password: REDACTED}}}
status: {conditions: [{type: Available, message: "fetching https://REDACTED@x.test failed"}]}
`

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// Every field in which a user may keep a credential loses its values, and nothing else changes.
func TestObject(t *testing.T) {
	got := parsed(t, strings.ReplaceAll(secretive, "MARKER", marker))
	Object(got)
	if want := parsed(t, redacted); !reflect.DeepEqual(got, want) {
		shown, _ := yaml.Marshal(got)
		t.Errorf("becomes\n%s", shown)
	}
}

// A field of such a name that holds no values is a part like others.
func TestObjectWithOtherShapes(t *testing.T) {
	got := parsed(t, `{data: "password=`+marker+`", env: {a: b}, annotations: x, metadata: y, args: 3}`)
	Object(got)
	want := parsed(t, `{data: "password=REDACTED", env: {a: b}, annotations: x, metadata: y, args: 3}`)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("becomes %v", got)
	}
}

// An annotation stays where its domain is the mesh's own.
func TestAnnotationsOfTheMesh(t *testing.T) {
	for name, want := range map[string]bool{
		"kubernetes.io/x": true, "a.kubernetes.io/x": true, "batch.k8s.io/x": true, "keelson.dev/x": true,
		"x": false, "notkubernetes.io/x": false, "kubernetes.io.example/x": false, "kubernetes.io": false,
	} {
		if got := ofMesh(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
