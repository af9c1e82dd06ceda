package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// registered is the finalizer of a Page that stands in the index.
const registered = group + "/registered"

// pages keeps for each Page a ConfigMap of its name with its text, and one of its UID in the index.
type pages struct {
	client.Client
	// index is the namespace of the index.
	index string
}

func (p *pages) watch(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&Page{}).Owns(&corev1.ConfigMap{}).Complete(p)
}

// Reconcile implements reconcile.Reconciler.
func (p *pages) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	page := &Page{}
	if err := p.Get(ctx, request.NamespacedName, page); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	entry := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.index, Name: "page-" + string(page.UID)}}
	if !page.DeletionTimestamp.IsZero() {
		if err := client.IgnoreNotFound(p.Delete(ctx, entry)); err != nil {
			return ctrl.Result{}, fmt.Errorf("taking the page off the index: %w", err)
		}
		if controllerutil.RemoveFinalizer(page, registered) {
			return ctrl.Result{}, client.IgnoreNotFound(p.Update(ctx, page))
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(page, registered) {
		if err := p.Update(ctx, page); err != nil {
			return ctrl.Result{}, fmt.Errorf("adding the finalizer: %w", err)
		}
	}
	if _, err := controllerutil.CreateOrUpdate(ctx, p.Client, entry, func() error {
		entry.Data = map[string]string{"page": request.String()}
		return nil
	}); err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the index: %w", err)
	}
	text := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: page.Namespace, Name: page.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, p.Client, text, func() error {
		text.Data = map[string]string{"text": page.Spec.Text}
		return controllerutil.SetControllerReference(page, text, p.Scheme())
	}); err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the text: %w", err)
	}
	page.Status.ObservedGeneration, page.Status.Words = page.Generation, len(strings.Fields(page.Spec.Text))
	meta.SetStatusCondition(&page.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue,
		Reason: "Written", Message: "the ConfigMap has the text", ObservedGeneration: page.Generation})
	return ctrl.Result{}, p.Status().Update(ctx, page)
}
