package projection

import (
	"io/fs"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/downward"
	"keelson.dev/services/nodeagent/internal/volume/atomicdir"
)

func file(text string, mode fs.FileMode) atomicdir.File {
	return atomicdir.File{Data: []byte(text), Mode: mode}
}

// With items a volume shows only the keys that they name: the others are kept from the container.
func TestFiles(t *testing.T) {
	data := map[string][]byte{"user": []byte("u"), "password": []byte("p"), "empty": nil}
	const missing = "references non-existent secret key: none"
	for _, row := range []struct {
		name     string
		items    []corev1.KeyToPath
		data     map[string][]byte
		optional bool
		want     atomicdir.Files
		wrong    string
	}{
		{"every key", nil, data, false, atomicdir.Files{"user": file("u", 0o440), "password": file("p", 0o440),
			"empty": {Mode: 0o440}}, ""},
		{"no keys", nil, nil, false, atomicdir.Files{}, ""},
		{"chosen keys alone", []corev1.KeyToPath{{Key: "user", Path: "a/b"}}, data, false,
			atomicdir.Files{"a/b": file("u", 0o440)}, ""},
		{"a mode of its own", []corev1.KeyToPath{{Key: "user", Path: "u"},
			{Key: "password", Path: "p", Mode: ptr.To[int32](0o400)}}, data, false,
			atomicdir.Files{"u": file("u", 0o440), "p": file("p", 0o400)}, ""},
		{"a mode of nothing is one", []corev1.KeyToPath{{Key: "user", Path: "u", Mode: ptr.To[int32](0)}}, data, false,
			atomicdir.Files{"u": file("u", 0)}, ""},
		{"one key under two paths", []corev1.KeyToPath{{Key: "user", Path: "a"}, {Key: "user", Path: "b"}}, data,
			false, atomicdir.Files{"a": file("u", 0o440), "b": file("u", 0o440)}, ""},
		{"a key that is there and empty", []corev1.KeyToPath{{Key: "empty", Path: "e"}}, data, false,
			atomicdir.Files{"e": {Mode: 0o440}}, ""},
		{"a missing key", []corev1.KeyToPath{{Key: "user", Path: "u"}, {Key: "none", Path: "n"}}, data, false, nil,
			missing},
		{"a missing key that may be", []corev1.KeyToPath{{Key: "none", Path: "n"}, {Key: "user", Path: "u"}}, data,
			true, atomicdir.Files{"u": file("u", 0o440)}, ""},
		{"all of them missing that may be", []corev1.KeyToPath{{Key: "none", Path: "n"}}, nil, true,
			atomicdir.Files{}, ""},
	} {
		keys := Keys{Items: row.items, DefaultMode: 0o440, Optional: row.optional,
			What: "references non-existent secret key"}
		got, err := keys.Files(row.data)
		if !reflect.DeepEqual(got, row.want) || (err == nil) != (row.wrong == "") || err != nil &&
			err.Error() != row.wrong {
			t.Errorf("%s: %v, %v; want %v, %q", row.name, got, err, row.want, row.wrong)
		}
	}
}

func TestConfigMapData(t *testing.T) {
	object := &corev1.ConfigMap{Data: map[string]string{"text": "t"}, BinaryData: map[string][]byte{"bin": {0, 0xff}}}
	want := map[string][]byte{"text": []byte("t"), "bin": {0, 0xff}}
	if got := ConfigMapData(object); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := ConfigMapData(&corev1.ConfigMap{}); len(got) != 0 {
		t.Errorf("an empty one has %v", got)
	}
}

func view() downward.View {
	return downward.View{Pod: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{
			"half": strings.Repeat("x", 16<<20), "one": "x"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")}}}}},
	}}
}

func fieldItem(path, field string) corev1.DownwardAPIVolumeFile {
	return corev1.DownwardAPIVolumeFile{Path: path, FieldRef: &corev1.ObjectFieldSelector{FieldPath: field}}
}

func resourceItem(path, container, name string) corev1.DownwardAPIVolumeFile {
	return corev1.DownwardAPIVolumeFile{Path: path, ResourceFieldRef: &corev1.ResourceFieldSelector{
		ContainerName: container, Resource: name}}
}

// SAF-109, SAF-118: fields of the Pod and amounts of a container become files.
func TestDownward(t *testing.T) {
	own := resourceItem("cpu", "app", "limits.cpu")
	own.Mode = ptr.To[int32](0o400)
	node := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	items := []corev1.DownwardAPIVolumeFile{fieldItem("dir/name", "metadata.name"), own,
		resourceItem("memory", "app", "limits.memory")}
	want := atomicdir.Files{"dir/name": file("web", 0o444), "cpu": file("2", 0o400), "memory": file("1073741824",
		0o444)}
	if got, err := Downward(view(), items, 0o444, node); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	for _, row := range []struct {
		item  corev1.DownwardAPIVolumeFile
		wrong string
	}{
		{corev1.DownwardAPIVolumeFile{Path: "p"}, "downward API file p: item needs fieldRef or resourceFieldRef"},
		{fieldItem("p", "spec.nope"), "downward API file p: unsupported fieldPath: spec.nope"},
		{resourceItem("p", "app", "limits.gpu"), "downward API file p: unsupported container resource : limits.gpu"},
		{resourceItem("p", "other", "limits.cpu"), "downward API file p: container other not found"},
		{resourceItem("p", "", "limits.cpu"), "downward API file p: container  not found"},
	} {
		got, err := Downward(view(), []corev1.DownwardAPIVolumeFile{fieldItem("a", "metadata.name"), row.item}, 0o444,
			node)
		if got != nil || err == nil || err.Error() != row.wrong {
			t.Errorf("got %v, %v; want %q", got, err, row.wrong)
		}
	}
}

// The files have at most 32 MiB together, which is checked before the next one is created.
func TestDownwardIsBounded(t *testing.T) {
	half, one := fieldItem("a", "metadata.annotations['half']"), fieldItem("c", "metadata.annotations['one']")
	again := half
	again.Path = "b"
	if got, err := Downward(view(), []corev1.DownwardAPIVolumeFile{half, again}, 0o444, nil); err != nil ||
		len(got) != 2 {
		t.Errorf("32 MiB: %d files, %v", len(got), err)
	}
	const wrong = "downward API file c: with it the files have more than 33554432 bytes together"
	if _, err := Downward(view(), []corev1.DownwardAPIVolumeFile{half, again, one}, 0o444, nil); err == nil ||
		err.Error() != wrong {
		t.Errorf("one byte more: %v, want %q", err, wrong)
	}
}

// A user owns the files alone only if no container of the Pod runs as another one.
func TestSoleUser(t *testing.T) {
	as := func(user int64) corev1.Container {
		return corev1.Container{SecurityContext: &corev1.SecurityContext{RunAsUser: &user}}
	}
	silent := corev1.Container{SecurityContext: &corev1.SecurityContext{}}
	whole := func(user int64) *corev1.PodSecurityContext { return &corev1.PodSecurityContext{RunAsUser: &user} }
	for _, row := range []struct {
		name string
		spec corev1.PodSpec
		want *int64
	}{
		{"the image says", corev1.PodSpec{Containers: []corev1.Container{{}}}, nil},
		{"the image says, with a context", corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{},
			Containers: []corev1.Container{silent}}, nil},
		{"the Pod says", corev1.PodSpec{SecurityContext: whole(7), Containers: []corev1.Container{{}, silent}},
			ptr.To[int64](7)},
		{"the container says", corev1.PodSpec{Containers: []corev1.Container{as(8)}}, ptr.To[int64](8)},
		{"the container says otherwise", corev1.PodSpec{SecurityContext: whole(7),
			Containers: []corev1.Container{as(8)}}, ptr.To[int64](8)},
		{"root", corev1.PodSpec{SecurityContext: whole(0), Containers: []corev1.Container{{}}}, ptr.To[int64](0)},
		{"two of one user", corev1.PodSpec{Containers: []corev1.Container{as(8), as(8)}}, ptr.To[int64](8)},
		{"two of two users", corev1.PodSpec{Containers: []corev1.Container{as(8), as(9)}}, nil},
		{"a third of the first's user", corev1.PodSpec{Containers: []corev1.Container{as(8), as(9), as(8)}}, nil},
		{"one of two says", corev1.PodSpec{Containers: []corev1.Container{as(8), {}}}, nil},
		{"an init container of another user", corev1.PodSpec{InitContainers: []corev1.Container{as(9)},
			Containers: []corev1.Container{as(8)}}, nil},
		{"an init container of the same user", corev1.PodSpec{InitContainers: []corev1.Container{as(8)},
			Containers: []corev1.Container{as(8)}}, ptr.To[int64](8)},
		{"an init container whose image says", corev1.PodSpec{InitContainers: []corev1.Container{{}},
			Containers: []corev1.Container{as(8)}}, nil},
	} {
		got := SoleUser(&corev1.Pod{Spec: row.spec})
		if (got == nil) != (row.want == nil) || got != nil && *got != *row.want {
			t.Errorf("%s: %v, want %v", row.name, ptr.Deref(got, -1), ptr.Deref(row.want, -1))
		}
	}
}
