package eventratelimit

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/configfile"
	"keelson.dev/kit/fieldcheck"
)

// limitType says what has a limit of its own.
type limitType string

const (
	server          limitType = "Server"
	namespace       limitType = "Namespace"
	user            limitType = "User"
	sourceAndObject limitType = "SourceAndObject"

	defaultCacheSize = 4096
)

// configuration is the kind Configuration of eventratelimit.admission.k8s.io/v1alpha1.
type configuration struct {
	metav1.TypeMeta `json:",inline"`
	Limits          []limit `json:"limits"`
}

type limit struct {
	Type limitType `json:"type"`
	QPS  int32     `json:"qps"`
	// Burst is how many Events may come at once.
	Burst int32 `json:"burst"`
	// CacheSize is how many of those that have a limit are remembered.
	CacheSize int32 `json:"cacheSize"`
}

// DeepCopyObject implements runtime.Object.
func (c *configuration) DeepCopyObject() runtime.Object {
	return &configuration{c.TypeMeta, append([]limit(nil), c.Limits...)}
}

var kind = configfile.Kind{APIVersion: "eventratelimit.admission.k8s.io/v1alpha1", Name: "Configuration"}

// Check says what is wrong with a configuration.
func Check(data []byte) error {
	_, err := parse(data)
	return err
}

func parse(data []byte) (*configuration, error) {
	if len(data) == 0 {
		return nil, errors.New("limits: the plugin needs a configuration with a limit at least")
	}
	c := &configuration{}
	if err := kind.Decode(data, c); err != nil {
		return nil, err
	}
	path := field.NewPath("limits")
	var errs field.ErrorList
	if len(c.Limits) == 0 {
		errs = append(errs, field.Required(path, "must have a limit at least"))
	}
	seen := map[limitType]bool{}
	for i := range c.Limits {
		l, at := &c.Limits[i], path.Index(i)
		errs = append(errs, fieldcheck.RequiredOneOf(l.Type, at.Child("type"), namespace, server, sourceAndObject,
			user)...)
		if seen[l.Type] {
			errs = append(errs, field.Duplicate(at.Child("type"), l.Type))
		}
		seen[l.Type] = true
		errs = append(errs, positive(l.QPS, at.Child("qps"))...)
		errs = append(errs, positive(l.Burst, at.Child("burst"))...)
		errs = append(errs, fieldcheck.NonNegative(l.CacheSize, at.Child("cacheSize"))...)
		if l.CacheSize == 0 {
			l.CacheSize = defaultCacheSize
		}
	}
	return c, errs.ToAggregate()
}

func positive(n int32, path *field.Path) field.ErrorList {
	if n < 1 {
		return field.ErrorList{field.Invalid(path, n, "must be greater than 0")}
	}
	return nil
}
