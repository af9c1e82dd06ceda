package leases

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

func TestComplaint(t *testing.T) {
	at := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		first, last look
		want        string
	}{
		"held and renewed": {look{"a", at}, look{"a", at.Add(time.Microsecond)}, ""},
		"taken over":       {look{"a", at}, look{"b", at.Add(time.Second)}, ""},
		"taken":            {look{"", time.Time{}}, look{"b", at}, ""},
		"not renewed":      {look{"a", at}, look{"a", at}, "a holds it and does not renew it"},
		"by a clock that went back": {look{"a", at}, look{"a", at.Add(-time.Second)},
			"a holds it and does not renew it"},
		"given up":   {look{"a", at}, look{"", at.Add(time.Second)}, "nobody holds it"},
		"never held": {look{}, look{}, "nobody holds it"},
		"held without a time at all": {look{"a", time.Time{}}, look{"a", time.Time{}},
			"a holds it and does not renew it"},
	} {
		if got := complaint(c.first, c.last); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Leases that are held and renewed are printed, those that are not there are left out, and one that stands still is
// named when the time is over.
func TestAwait(t *testing.T) {
	lease := func(name, holder string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: ptr.To(metav1.NowMicro())}}
	}
	for name, c := range map[string]struct {
		there  []runtime.Object
		stands string // the name of one that is not renewed
		want   string
		err    string
	}{
		"all are renewed": {[]runtime.Object{lease("x.a", "p"), lease("x.b", "q")}, "",
			"x.a: p holds it and renews it\nx.b: q holds it and renews it\n", ""},
		"one is not there": {[]runtime.Object{lease("x.b", "q")}, "", "x.b: q holds it and renews it\n", ""},
		"one stands still": {[]runtime.Object{lease("x.a", "p"), lease("x.b", "q")}, "x.b", "",
			"x.b: q holds it and does not renew it"},
		"nobody holds one": {[]runtime.Object{lease("x.a", "p"), lease("x.b", "")}, "", "", "x.b: nobody holds it"},
		"none is there":    {nil, "", "", "there is none of the Leases x.a, x.b"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := fake.NewClientset(c.there...)
				api.PrependReactor("get", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
					name := a.(clienttesting.GetAction).GetName()
					object, err := api.Tracker().Get(a.GetResource(), "kube-system", name)
					if err != nil {
						return true, nil, err
					}
					renewed := object.(*coordinationv1.Lease).DeepCopy()
					if name != c.stands {
						renewed.Spec.RenewTime = ptr.To(metav1.NowMicro())
					}
					return true, renewed, nil
				})
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				var out strings.Builder
				err := Await(ctx, api.CoordinationV1().Leases("kube-system"), []string{"x.a", "x.b"}, &out)
				said := ""
				if err != nil {
					said = err.Error()
				}
				if out.String() != c.want || said != c.err {
					t.Errorf("it says %q and fails with %q, want %q and %q", out.String(), said, c.want, c.err)
				}
			})
		})
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"x"}, {"--no-such-flag"}, {"--kubeconfig=/no/such/file"}} {
		if got := Main("x", nil, args); got != 2 {
			t.Errorf("%q ends with %d", args, got)
		}
	}
}
