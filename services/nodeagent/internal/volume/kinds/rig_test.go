package kinds_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/csivolume"
	"keelson.dev/services/nodeagent/internal/downward"
	"keelson.dev/services/nodeagent/internal/localvolume"
	"keelson.dev/services/nodeagent/internal/podfiles"
	"keelson.dev/services/nodeagent/internal/volume"
	"keelson.dev/services/nodeagent/internal/volume/claim"
	"keelson.dev/services/nodeagent/internal/volume/kinds"
)

// objects are API objects in memory.
type objects struct {
	configMaps map[string]*corev1.ConfigMap
	secrets    map[string]*corev1.Secret
	claims     map[string]*corev1.PersistentVolumeClaim
	volumes    map[string]*corev1.PersistentVolume
	bundles    []certificatesv1.ClusterTrustBundle
	token      volume.Token
	tokenErr   error
	asked      []string
}

func (o *objects) ConfigMap(_ context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	if found := o.configMaps[namespace+"/"+name]; found != nil {
		return found, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("configmap"), name)
}

func (o *objects) Secret(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	if found := o.secrets[namespace+"/"+name]; found != nil {
		return found, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("secret"), name)
}

func (o *objects) TrustBundle(_ context.Context, name string) (*certificatesv1.ClusterTrustBundle, error) {
	for i := range o.bundles {
		if o.bundles[i].Name == name {
			return &o.bundles[i], nil
		}
	}
	return nil, apierrors.NewNotFound(corev1.Resource("clustertrustbundle"), name)
}

func (o *objects) TrustBundles(_ context.Context, signer string) (found []certificatesv1.ClusterTrustBundle, _ error) {
	for i := range o.bundles {
		if o.bundles[i].Spec.SignerName == signer {
			found = append(found, o.bundles[i])
		}
	}
	return found, nil
}

func (o *objects) Claim(_ context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	if found := o.claims[namespace+"/"+name]; found != nil {
		return found, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("persistentvolumeclaim"), name)
}

func (o *objects) PersistentVolume(_ context.Context, _ types.UID, name string) (*corev1.PersistentVolume, error) {
	if found := o.volumes[name]; found != nil {
		return found, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("persistentvolume"), name)
}

func (o *objects) ServiceAccountToken(_ context.Context, _ *corev1.Pod, audience string,
	lifetime time.Duration) (volume.Token, error) {
	o.asked = append(o.asked, audience+" "+lifetime.String())
	return o.token, o.tokenErr
}

// rig is a Host on real disk and, if asked for, real mounts.
type rig struct {
	*volume.Host
	root    podfiles.Root
	objects *objects
	store   *localvolume.Store
	drivers *csivolume.Volumes
	driver  *driver
	mounter volume.Mounter
	pod     *corev1.Pod
}

func newRig(t *testing.T, mounter volume.Mounter) *rig {
	r := &rig{root: podfiles.Root{Dir: t.TempDir(), LogDir: t.TempDir()}, mounter: mounter, objects: &objects{
		configMaps: map[string]*corev1.ConfigMap{"ns/cm": {Data: map[string]string{"a": "1", "b": "2"},
			BinaryData: map[string][]byte{"bin": {0, 1}}}},
		secrets: map[string]*corev1.Secret{"ns/key": {Data: map[string][]byte{"password": []byte("hush")}}},
		token:   volume.Token{Value: "token-1", RefreshAt: time.Unix(1000, 0)},
	}}
	r.store = localvolume.NewStore(r.root, mounter)
	r.driver = &driver{mounter: mounter, data: t.TempDir()}
	r.drivers = csivolume.Open(csivolume.Config{Files: r.root, Mounter: mounter,
		Objects: driverObjects{r.driver, r.objects}, NodeName: "n",
		Log: zap.NewNop(), Changed: func() {},
		Driver: func(string) (csivolume.Driver, error) { return r.driver, nil }})
	r.Host = volume.NewHost(r.root, mounter, kinds.All(mounter, r.objects, claim.Kind{Objects: r.objects,
		Store: r.store, Drivers: r.drivers, Node: func() *corev1.Node {
			return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n",
				Labels: map[string]string{corev1.LabelHostname: "n"}}}
		}}))
	r.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u-1",
		Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}
	if err := r.root.Make(r.pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.TearDown(context.Background(), r.pod.UID); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
	})
	return r
}

// TearDown takes the volumes down and then the Pod's folder, as a nodeagent does.
func (r *rig) TearDown(ctx context.Context, uid types.UID) error {
	return tearDown(ctx, r.Host, r.root, uid)
}

func tearDown(ctx context.Context, host *volume.Host, root podfiles.Root, uid types.UID) error {
	if err := host.TearDown(ctx, uid); err != nil {
		return err
	}
	return root.Remove(uid)
}

// add puts a volume into the Pod and mounts it into its container.
func (r *rig) add(name string, source corev1.VolumeSource) {
	r.pod.Spec.Volumes = append(r.pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	r.pod.Spec.Containers[0].VolumeMounts = append(r.pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name,
		MountPath: "/" + name})
}

func (r *rig) setUp(t *testing.T) volume.Volumes {
	t.Helper()
	volumes, err := r.trySetUp(t)
	if err != nil {
		t.Fatal(err)
	}
	return volumes
}

func (r *rig) trySetUp(t *testing.T) (volume.Volumes, error) {
	view := downward.View{Pod: r.pod, PodIPs: []string{"10.1.0.7"}}
	return r.SetUp(t.Context(), view, corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi"),
		corev1.ResourceCPU: resource.MustParse("4")})
}

func wantFile(t *testing.T, dir, name, want string) {
	t.Helper()
	if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != want {
		t.Errorf("%s: %q, %v; want %q", name, data, err, want)
	}
}

func configMapSource(name string, change func(*corev1.ConfigMapVolumeSource)) corev1.VolumeSource {
	source := &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}
	if change != nil {
		change(source)
	}
	return corev1.VolumeSource{ConfigMap: source}
}
