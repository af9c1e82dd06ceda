package kubeletconfig

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// flagsOf returns the flags of all fields, each of the type that the field requires.
func flagsOf() *pflag.FlagSet {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	for path, name := range flags {
		field := at(&kubeletv1beta1.KubeletConfiguration{}, path)
		of := field.Type()
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		switch of.Kind() {
		case reflect.Bool:
			fs.Bool(name, false, "")
		case reflect.Slice:
			fs.StringSlice(name, nil, "")
		case reflect.Struct:
			fs.Duration(name, 0, "")
		case reflect.String:
			fs.String(name, "", "")
		case reflect.Map:
			if strings.HasPrefix(path, "eviction") {
				fs.StringSlice(name, nil, "")
			} else {
				fs.StringToString(name, nil, "")
			}
		case reflect.Float64:
			fs.Float64(name, 0, "")
		default:
			fs.Int64(name, 0, "")
		}
	}
	return fs
}

// A file's settings are shown as in the file, with all fixed fields, and the result can be read again.
func TestInForce(t *testing.T) {
	const body = head + `
address: 127.0.0.1
authentication: {x509: {clientCAFile: /ca}, webhook: {enabled: false, cacheTTL: 1m}}
clusterDNS: [10.0.0.10, 'fd00::10']
containerLogMaxSize: 10Mi
cpuManagerPolicy: static
evictionHard: {memory.available: 1Gi, nodefs.available: 10%}
evictionMinimumReclaim: {memory.available: 1Mi}
failSwapOn: true
imageGCLowThresholdPercent: 0
kubeReserved: {cpu: 100m, memory: 1Gi}
maxPods: 7
memoryReservationPolicy: TieredReservation
memorySwap: {swapBehavior: LimitedSwap}
memoryThrottlingFactor: 0.85
podPidsLimit: -1
registerWithTaints: [{key: a, value: b, effect: NoSchedule}, {key: c, effect: NoExecute}]
resolvConf: ""
seccompDefault: true
singleProcessOOMKill: false
`
	values := flagsOf()
	if err := values.Set("container-log-max-size", "0"); err != nil {
		t.Fatal(err)
	}
	settings, err := Read([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range settings {
		if err := values.Set(s.Flag, s.Value); err != nil {
			t.Fatal(err)
		}
	}
	config, err := InForce(values)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"kind":"KubeletConfiguration"`, `"apiVersion":"kubelet.config.k8s.io/v1beta1"`,
		`"address":"127.0.0.1"`, `"x509":{"clientCAFile":"/ca"}`, `"webhook":{"enabled":false,"cacheTTL":"1m0s"}`,
		`"anonymous":{"enabled":false}`, `"authorization":{"mode":"Webhook"`, `"clusterDNS":["10.0.0.10","fd00::10"]`,
		`"containerLogMaxSize":"10Mi"`, `"cpuManagerPolicy":"static"`, `"imageGCLowThresholdPercent":0`,
		`"evictionHard":{"memory.available":"1Gi","nodefs.available":"10%"}`, `"resolvConf":""`,
		`"evictionMinimumReclaim":{"memory.available":"1Mi"}`, `"kubeReserved":{"cpu":"100m","memory":"1Gi"}`,
		`"maxPods":7`, `"podPidsLimit":-1`, `"seccompDefault":true`, `"cgroupsPerQOS":true`,
		`"nodeLeaseDurationSeconds":40`, `"memorySwap":{"swapBehavior":"LimitedSwap"}`, `"failSwapOn":true`,
		`"memoryThrottlingFactor":0.85`, `"memoryReservationPolicy":"TieredReservation"`,
		`"singleProcessOOMKill":false`, `"registerWithTaints":[{"key":"a","value":"b",` +
			`"effect":"NoSchedule"},{"key":"c","effect":"NoExecute"}]`} {
		if !strings.Contains(string(shown), want) {
			t.Errorf("%s has no %s", shown, want)
		}
	}
	again, err := Read(shown)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range settings {
		found := false
		for _, a := range again {
			found = found || a == s
		}
		if !found {
			t.Errorf("of %v is read again %v", s, again)
		}
	}
}
