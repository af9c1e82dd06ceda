package aggregation

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// automanaged labels the APIServices that apiservers keep. One without it is its maker's own. Label and values are
// those of Kubernetes.
const (
	automanaged = "kube-aggregator.kubernetes.io/automanaged"
	// ofBuiltIn is the value for what an apiserver serves itself, ofDefined that for what is defined.
	ofBuiltIn = "onstart"
	ofDefined = "true"
)

// settled is how old an APIService is whose definition every apiserver knows.
const settled = 10 * time.Second

// Local is what is known of the versions that are not handed on.
type Local struct {
	// Wanted are the APIServices that they are to have.
	Wanted map[string]*apiregistration.APIService
	// Stored are those that there are, of all versions.
	Stored []*apiregistration.APIService
	// Known are the names of those whose definition this apiserver has known.
	Known map[string]bool
	// Starting says that this is the first look, Whole that it is the first or one in a while: between those, only
	// what is defined is brought up to date. So apiservers that do not agree, as in the middle of an upgrade, change
	// the same APIService once in a while and not all the time.
	Starting, Whole bool
	Now             time.Time
}

// Writes are what makes the stored APIServices the wanted ones.
type Writes struct{ Create, Update, Delete []*apiregistration.APIService }

// wantedLocal are the APIServices of the versions that are served or defined.
func wantedLocal(served, defined map[string][]string) map[string]*apiregistration.APIService {
	wanted := map[string]*apiregistration.APIService{}
	for group, versions := range defined {
		for _, version := range versions {
			want(wanted, schema.GroupVersion{Group: group, Version: version}, ofDefined, definedPriority)
		}
	}
	for group, versions := range served {
		for _, name := range versions {
			version := schema.GroupVersion{Group: group, Version: name}
			if at, has := priorities[version]; has {
				want(wanted, version, ofBuiltIn, at)
			}
		}
	}
	return wanted
}

func want(wanted map[string]*apiregistration.APIService, version schema.GroupVersion, label string, at priority) {
	name := version.Version + "." + version.Group
	wanted[name] = &apiregistration.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{automanaged: label}},
		Spec: apiregistration.APIServiceSpec{Group: version.Group, Version: version.Version,
			GroupPriorityMinimum: at.group, VersionPriority: at.version},
	}
}

// decideLocals says what to write. Nothing that it is given changes.
func decideLocals(l Local) Writes {
	var w Writes
	stored := map[string]bool{}
	for _, s := range l.Stored {
		stored[s.Name] = true
		wanted, label := l.Wanted[s.Name], s.Labels[automanaged]
		switch {
		case label != ofBuiltIn && label != ofDefined:
		case wanted == nil:
			if l.spurious(s, label) {
				w.Delete = append(w.Delete, s)
			}
		case l.due(wanted) && (!equality.Semantic.DeepEqual(s.Spec, wanted.Spec) ||
			label != wanted.Labels[automanaged]):
			changed := s.DeepCopy()
			changed.Spec = wanted.Spec
			changed.Labels[automanaged] = wanted.Labels[automanaged]
			w.Update = append(w.Update, changed)
		}
	}
	for name, wanted := range l.Wanted {
		if !stored[name] && l.due(wanted) {
			w.Create = append(w.Create, wanted)
		}
	}
	byName := func(a, b *apiregistration.APIService) int { return cmp.Compare(a.Name, b.Name) }
	for _, each := range [][]*apiregistration.APIService{w.Create, w.Update, w.Delete} {
		slices.SortFunc(each, byName)
	}
	return w
}

// due reports whether this pass looks after the APIService.
func (l *Local) due(wanted *apiregistration.APIService) bool {
	return l.Whole || wanted.Labels[automanaged] == ofDefined
}

// spurious reports whether an APIService that this apiserver does not want is deleted. Another apiserver may have known
// a new definition earlier, or serve more versions itself.
func (l *Local) spurious(s *apiregistration.APIService, label string) bool {
	if label == ofBuiltIn {
		return l.Starting
	}
	return l.Known[s.Name] || l.Now.Sub(s.CreationTimestamp.Time) >= settled
}

// decideKnown are the names of those whose definition this apiserver has known, after this look. One that was deleted
// may come into sight late, so it is forgotten only in a while.
func decideKnown(l Local) map[string]bool {
	known := map[string]bool{}
	if !l.Whole {
		maps.Copy(known, l.Known)
	}
	for _, s := range l.Stored {
		if l.Known[s.Name] {
			known[s.Name] = true
		}
	}
	for name, wanted := range l.Wanted {
		if wanted.Labels[automanaged] == ofDefined {
			known[name] = true
		}
	}
	return known
}
