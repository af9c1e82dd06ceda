package legacytoken

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"keelson.dev/kit/podview"
	"keelson.dev/services/apiserver/internal/authn/satoken"
)

const (
	// TrackingName is the ConfigMap in kube-system that says since which day the use of tokens is recorded.
	TrackingName = "kube-apiserver-legacy-service-account-token-tracking"
	sinceKey     = "since"
)

// Use is all that a decision about an unused token depends on.
type Use struct {
	Secret *corev1.Secret
	// Account has the name that the Secret gives; nil: there is none.
	Account *corev1.ServiceAccount
	// Recorded is the day since which the use of tokens is recorded.
	Recorded time.Time
	// Period is how long a token stays unused before it is refused, and again before its Secret is deleted.
	Period time.Duration
	Now    time.Time
}

// Verdict is what becomes of an unused token.
type Verdict string

// The verdicts. What a Pod uses is kept whatever the verdict is.
const (
	Keep   Verdict = "keep"
	Mark   Verdict = "mark"
	Remove Verdict = "remove"
)

// DecideUnused says what becomes of a Secret. A token without a day of use is unused since use is recorded. A Secret
// with a day that cannot be read is kept, and so is one that its account does not list, which a user may have made.
func DecideUnused(u Use) Verdict {
	s := u.Secret
	limit := u.Now.Add(-u.Period)
	// The first recorded day counts from its end on.
	if limit.Before(u.Recorded.AddDate(0, 0, 1)) || !s.CreationTimestamp.Time.Before(limit) ||
		s.Type != corev1.SecretTypeServiceAccountToken || s.DeletionTimestamp != nil {
		return Keep
	}
	if last, ok := s.Labels[satoken.LastUsedLabel]; ok && !before(last, limit) {
		return Keep
	}
	if !belongs(s, u.Account) || !satoken.Lists(u.Account, s.Name) {
		return Keep
	}
	since := s.Labels[satoken.InvalidSinceLabel]
	if _, err := time.Parse(time.DateOnly, since); err != nil {
		return Mark
	}
	if before(since, limit) {
		return Remove
	}
	return Keep
}

// before is whether a day is one, and lies before that of limit.
func before(day string, limit time.Time) bool {
	_, err := time.Parse(time.DateOnly, day)
	return err == nil && day < satoken.Date(limit)
}

// Tracking is the content of the ConfigMap TrackingName, given what it has now, or nil if that is right.
func Tracking(data map[string]string, now time.Time) map[string]string {
	if _, err := recordedSince(data); err == nil {
		return nil
	}
	return map[string]string{sinceKey: satoken.Date(now)}
}

func recordedSince(data map[string]string) (time.Time, error) {
	day, err := time.Parse(time.DateOnly, data[sinceKey])
	if err != nil {
		return time.Time{}, fmt.Errorf("data[%s]: %q is no day of the form 2006-01-02", sinceKey, data[sinceKey])
	}
	return day, nil
}

// usedBy are the names of the Secrets that the Pods use.
func usedBy(pods []corev1.Pod) sets.Set[string] {
	used := sets.New[string]()
	for i := range pods {
		podview.VisitReferences(&pods[i], func(r podview.Reference) {
			if r.Resource == podview.Secrets {
				used.Insert(r.Name)
			}
		})
	}
	return used
}
