package steps

import (
	"reflect"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/services/nodeagent/internal/containerconfig"
	"keelson.dev/services/nodeagent/internal/deviceplugin"
	"keelson.dev/services/nodeagent/internal/podenv"
)

// What a plugin gives a container comes before the Pod's own settings, so that these win.
func TestWithDevices(t *testing.T) {
	own := containerconfig.ContainerInput{Env: podenv.Result{Env: []podenv.Variable{{Name: "LED", Value: "mine"}}},
		Mounts: []*cri.Mount{{ContainerPath: "/mine"}}}
	got := withDevices(own, deviceplugin.Grant{Envs: map[string]string{"LED": "a", "B": "b"},
		Mounts:      []deviceplugin.Mount{{Host: "/h", Container: "/c", ReadOnly: true}},
		Nodes:       []deviceplugin.Node{{Host: "/dev/h", Container: "/dev/c", Permissions: "r"}},
		Annotations: map[string]string{"k": "v"}, CDI: []string{"x=1"}})
	want := containerconfig.ContainerInput{
		Env: podenv.Result{Env: []podenv.Variable{{Name: "B", Value: "b"}, {Name: "LED", Value: "a"},
			own.Env.Env[0]}},
		Mounts:      []*cri.Mount{{HostPath: "/h", ContainerPath: "/c", Readonly: true}, own.Mounts[0]},
		Devices:     []*cri.Device{{HostPath: "/dev/h", ContainerPath: "/dev/c", Permissions: "r"}},
		CDIDevices:  []*cri.CDIDevice{{Name: "x=1"}},
		Annotations: map[string]string{"k": "v"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if same := withDevices(own, deviceplugin.Grant{}); !reflect.DeepEqual(same.Env, own.Env) ||
		!reflect.DeepEqual(same.Mounts, own.Mounts) || same.Devices != nil || same.CDIDevices != nil {
		t.Errorf("without devices: %+v", same)
	}
}
