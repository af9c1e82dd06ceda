package volumestats

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/nodeagent/internal/csivolume"
)

// What a driver does not know, or cannot be true, is left out.
func TestFiguresOf(t *testing.T) {
	const inodes, bytes = csi.VolumeUsage_INODES, csi.VolumeUsage_BYTES
	sick := &csi.VolumeCondition{Abnormal: true, Message: "disk\nfails"}
	for _, row := range []struct {
		name       string
		usage      []*csi.VolumeUsage
		condition  *csi.VolumeCondition
		conditions bool
		want       string
	}{
		{name: "nothing", want: `{},{},null`},
		{name: "all", usage: []*csi.VolumeUsage{{Unit: bytes, Total: 9, Available: 5, Used: 4},
			{Unit: inodes, Total: 3, Available: 2, Used: 1}}, condition: sick, conditions: true,
			want: `{"Total":9,"Available":5,"Used":4},{"Total":3,"Available":2,"Used":1},` +
				`{"Abnormal":true,"Message":"disk fails"}`},
		{name: "full", usage: []*csi.VolumeUsage{{Unit: bytes, Total: 9, Used: 9}},
			want: `{"Total":9,"Available":0,"Used":9},{},null`},
		{name: "empty", usage: []*csi.VolumeUsage{{Unit: bytes, Total: 9, Available: 9}},
			want: `{"Total":9,"Available":9,"Used":0},{},null`},
		{name: "a device, of which the size alone is known", usage: []*csi.VolumeUsage{{Unit: bytes, Total: 9}},
			want: `{"Total":9},{},null`},
		{name: "no size", usage: []*csi.VolumeUsage{{Unit: inodes, Used: 9}},
			want: `{},{"Available":0,"Used":9},null`},
		{name: "below zero", usage: []*csi.VolumeUsage{{Unit: bytes, Total: 9, Available: -1, Used: 1},
			{Unit: inodes, Total: -9, Used: 1}, {Unit: inodes, Total: 9, Used: -1}}, want: `{},{},null`},
		{name: "no unit", usage: []*csi.VolumeUsage{{Total: 9, Used: 9}, {Unit: 77, Total: 9}}, want: `{},{},null`},
		{name: "a condition of a driver that reports none", condition: sick, want: `{},{},null`},
		{name: "in order", condition: &csi.VolumeCondition{Message: "ok"}, conditions: true,
			want: `{},{},{"Abnormal":false,"Message":"ok"}`},
	} {
		at := time.Unix(7, 0)
		got := figuresOf(&csi.NodeGetVolumeStatsResponse{Usage: row.usage, VolumeCondition: row.condition},
			row.conditions, at)
		text := ""
		for _, amounts := range []Amounts{got.Bytes, got.Inodes} {
			fields := map[string]*uint64{"Total": amounts.Total, "Available": amounts.Available, "Used": amounts.Used}
			text += told(t, fields) + ","
		}
		if text += encoded(t, got.Condition); text != row.want || !got.At.Equal(at) {
			t.Errorf("%s: %s, want %s", row.name, text, row.want)
		}
	}
}

// told returns the known amounts as text.
func told(t *testing.T, amounts map[string]*uint64) string {
	t.Helper()
	out := ""
	for _, name := range []string{"Total", "Available", "Used"} {
		if amount := amounts[name]; amount != nil {
			out += `,"` + name + `":` + encoded(t, *amount)
		}
	}
	if out != "" {
		out = out[1:]
	}
	return "{" + out + "}"
}

func encoded(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A driver is asked again after a minute, a slow one after ten times as long as it took.
func TestNextAfter(t *testing.T) {
	asked := time.Unix(0, 0)
	for took, want := range map[time.Duration]time.Duration{
		0: time.Minute, 6 * time.Second: 66 * time.Second, 7 * time.Second: 77 * time.Second,
	} {
		if got := nextAfter(asked, asked.Add(took)).Sub(asked); got != want {
			t.Errorf("after %v: %v, want %v", took, got, want)
		}
	}
}

// Pods are told once that a volume is out of order, and again when it is so in another way.
func TestWorsened(t *testing.T) {
	says := func(abnormal bool, message string) Figures {
		return Figures{Condition: &Condition{Abnormal: abnormal, Message: message}}
	}
	fine, sick := says(false, "ok"), says(true, "sick")
	for _, row := range []struct {
		name   string
		before *Figures
		now    Figures
		want   bool
	}{
		{"fine at first", nil, fine, false},
		{"sick at first", nil, sick, true},
		{"no condition", nil, Figures{}, false},
		{"no condition before", &Figures{}, sick, true},
		{"no condition any more", &sick, Figures{}, false},
		{"stays", &sick, says(true, "sick"), false},
		{"in another way", &sick, says(true, "dead"), true},
		{"worsens", &fine, sick, true},
		{"recovers", &sick, fine, false},
	} {
		if got := worsened(row.before, row.now); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

// Answers are found by the claim of a volume, or by its own name if it is inline.
func TestAnswers(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Name: "web"}}
	known := map[place]Figures{}
	for i, v := range []csivolume.Standing{{Pod: "u", Name: "pv-1", Claim: "data"},
		{Pod: "u", Name: "pv-2", Claim: "web-own"},
		{Pod: "u", Name: "scratch"}, {Pod: "v", Name: "other"}} {
		known[placeOf(v)] = Figures{At: time.Unix(int64(i), 0)}
	}
	for name, row := range map[string]struct {
		source corev1.VolumeSource
		want   int64
	}{
		"data": {corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
			ClaimName: "data"}}, 0},
		"own":     {corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}, 1},
		"scratch": {corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}, 2},
		"other":   {corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}, -1},
		"pv-1":    {corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}, -1},
	} {
		found, ok := answers(known)(pod, &corev1.Volume{Name: name, VolumeSource: row.source})
		if ok != (row.want >= 0) || ok && found.At.Unix() != row.want {
			t.Errorf("%s: %v, %v", name, found, ok)
		}
	}
	folder := &corev1.Volume{Name: "scratch",
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	if found, ok := answers(known)(pod, folder); ok {
		t.Errorf("a folder of the name of another Pod's volume has the figures %v", found)
	}
}
