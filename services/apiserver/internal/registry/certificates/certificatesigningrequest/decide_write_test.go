package certificatesigningrequest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	then = metav1.NewTime(time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC))
	now  = metav1.NewTime(then.Add(time.Hour))
)

// Who asks is who sends the request, whatever it says.
func TestSetRequester(t *testing.T) {
	who := authenticationv1.UserInfo{Username: "ann", UID: "u1", Groups: []string{"readers"},
		Extra: map[string]authenticationv1.ExtraValue{"scopes": {"some"}}}
	r := asking(t, func(r *csr) {
		r.Spec.Username, r.Spec.UID, r.Spec.Groups = "root", "0", []string{"system:masters"}
		r.Spec.Extra = map[string]certificatesv1.ExtraValue{"all": {"yes"}}
	})
	setRequester(r, who)
	want := map[string]certificatesv1.ExtraValue{"scopes": {"some"}}
	if s := r.Spec; s.Username != "ann" || s.UID != "u1" || !reflect.DeepEqual(s.Groups, []string{"readers"}) ||
		!reflect.DeepEqual(s.Extra, want) {
		t.Errorf("asked by %+v", s)
	}
	r.Spec.Groups[0], r.Spec.Extra["scopes"][0] = "x", "x"
	if who.Groups[0] != "readers" || who.Extra["scopes"][0] != "some" {
		t.Error("what the request holds is the requester's own")
	}
	setRequester(r, authenticationv1.UserInfo{})
	if s := r.Spec; s.Username != "" || s.UID != "" || len(s.Groups) > 0 || s.Extra != nil {
		t.Errorf("of nobody known: %+v", s)
	}
}

// shown writes conditions as type, reason and the hour of both times.
func shown(conditions []condition) string {
	var all []string
	for _, c := range conditions {
		all = append(all, fmt.Sprintf("%s/%s %d/%d", c.Type, c.Reason, c.LastUpdateTime.UTC().Hour(),
			c.LastTransitionTime.UTC().Hour()))
	}
	return strings.Join(all, ", ")
}

func TestPrepare(t *testing.T) {
	told := func(kind certificatesv1.RequestConditionType, reason string, at metav1.Time) condition {
		return condition{Type: kind, Status: "True", Reason: reason, LastUpdateTime: at, LastTransitionTime: at}
	}
	fresh := func(kind certificatesv1.RequestConditionType, reason string) condition {
		return told(kind, reason, metav1.Time{})
	}
	type list = []condition
	for _, row := range []struct {
		name               string
		old, written       list
		status, byApproval string
	}{
		{"nothing", nil, nil, "", ""},
		{"a verdict", nil, list{fresh(approved, "new")}, "", "Approved/new 13/13"},
		{"a failure", nil, list{fresh(failed, "new")}, "Failed/new 13/13", "Failed/new 13/13"},
		{"a failure beside a verdict", list{told(approved, "was", then)}, list{fresh(failed, "new")},
			"Approved/was 12/12, Failed/new 13/13", "Failed/new 13/13"},
		{"another verdict", list{told(approved, "was", then)}, list{fresh(denied, "new")}, "Approved/was 12/12",
			"Denied/new 13/13"},
		{"another reason", list{told(approved, "was", then)}, list{fresh(approved, "new")}, "Approved/was 12/12",
			"Approved/new 13/12"},
		{"a verdict twice", list{told(approved, "was", then)}, list{fresh(approved, "a"), fresh(approved, "b")},
			"Approved/was 12/12", "Approved/a 13/12, Approved/b 13/12"},
		{"in another order", list{told("Seen", "was", then), told(approved, "was", then)},
			list{told("Seen", "was", then), told(approved, "was", then)}, "Seen/was 12/12, Approved/was 12/12",
			"Seen/was 12/12, Approved/was 12/12"},
		{"times of its own", nil, list{told("Seen", "new", then)}, "Seen/new 12/12", "Seen/new 12/12"},
	} {
		t.Run(row.name, func(t *testing.T) {
			old := asking(t)
			old.Status = certificatesv1.CertificateSigningRequestStatus{Conditions: row.old, Certificate: []byte("was")}
			before := old.DeepCopy()
			write := func(prepare func(r, old *csr, now metav1.Time)) *csr {
				r := asking(t)
				r.Status.Conditions, r.Status.Certificate = append(list(nil), row.written...), []byte("new")
				prepare(r, old, now)
				return r
			}
			r := write(prepareStatus)
			if got := shown(r.Status.Conditions); got != row.status || string(r.Status.Certificate) != "new" {
				t.Errorf("a write of /status makes it %q with %s, want %q", got, r.Status.Certificate, row.status)
			}
			r = write(prepareApproval)
			if got := shown(r.Status.Conditions); got != row.byApproval || string(r.Status.Certificate) != "was" ||
				!reflect.DeepEqual(r.Spec, old.Spec) {
				t.Errorf("a write of /approval makes it %q with %s, want %q", got, r.Status.Certificate, row.byApproval)
			}
			if !reflect.DeepEqual(before, old) {
				t.Error("what was stored has changed")
			}
		})
	}
}
