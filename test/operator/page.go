package main

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
)

const group = "operator.example.com"

// Page is the first version of the kind, in which the operator thinks.
type Page struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PageSpec   `json:"spec,omitempty"`
	Status            PageStatus `json:"status,omitempty"`
}

// PageSpec says what is on the page: at most Limit words of Text; 0 stands for the default.
type PageSpec struct {
	Text  string `json:"text"`
	Limit int    `json:"limit,omitempty"`
}

// PageStatus describes the ConfigMap with the text.
type PageStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Words              int                `json:"words,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// PageV2 is the second version of the kind, which has the text in lines.
type PageV2 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PageV2Spec `json:"spec,omitempty"`
	Status            PageStatus `json:"status,omitempty"`
}

// PageV2Spec is PageSpec with the text in lines.
type PageV2Spec struct {
	Lines []string `json:"lines"`
	Limit int      `json:"limit,omitempty"`
}

// PageList is Pages of the first version.
type PageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Page `json:"items"`
}

// addPages adds both versions to a scheme.
func addPages(scheme *runtime.Scheme) error {
	v1 := schema.GroupVersion{Group: group, Version: "v1"}
	scheme.AddKnownTypes(v1, &Page{}, &PageList{})
	metav1.AddToGroupVersion(scheme, v1)
	v2 := schema.GroupVersion{Group: group, Version: "v2"}
	scheme.AddKnownTypeWithName(v2.WithKind("Page"), &PageV2{})
	metav1.AddToGroupVersion(scheme, v2)
	return nil
}

// Hub implements conversion.Hub: all versions are converted to and from this one.
func (*Page) Hub() {}

// ConvertTo implements conversion.Convertible.
func (p *PageV2) ConvertTo(hub conversion.Hub) error {
	to, ok := hub.(*Page)
	if !ok {
		return fmt.Errorf("a Page of v2 becomes no %T", hub)
	}
	to.ObjectMeta, to.Status = p.ObjectMeta, p.Status
	to.Spec = PageSpec{Text: strings.Join(p.Spec.Lines, "\n"), Limit: p.Spec.Limit}
	return nil
}

// ConvertFrom implements conversion.Convertible.
func (p *PageV2) ConvertFrom(hub conversion.Hub) error {
	from, ok := hub.(*Page)
	if !ok {
		return fmt.Errorf("a %T becomes no Page of v2", hub)
	}
	p.ObjectMeta, p.Status = from.ObjectMeta, from.Status
	p.Spec = PageV2Spec{Lines: strings.Split(from.Spec.Text, "\n"), Limit: from.Spec.Limit}
	return nil
}

// DeepCopyObject implements runtime.Object.
func (p *Page) DeepCopyObject() runtime.Object {
	out := *p
	p.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status = p.Status.copied()
	return &out
}

// DeepCopyObject implements runtime.Object.
func (p *PageV2) DeepCopyObject() runtime.Object {
	out := *p
	p.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Lines = append([]string(nil), p.Spec.Lines...)
	out.Status = p.Status.copied()
	return &out
}

// DeepCopyObject implements runtime.Object.
func (l *PageList) DeepCopyObject() runtime.Object {
	out := PageList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Page))
	}
	return &out
}

func (s PageStatus) copied() PageStatus {
	conditions := s.Conditions
	s.Conditions = nil
	for i := range conditions {
		s.Conditions = append(s.Conditions, *conditions[i].DeepCopy())
	}
	return s
}
