package noderestriction

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"keelson.dev/kit/podview"
	"keelson.dev/kit/volumename"
)

// forAudience is the verb by which a role lets nodes ask for tokens for an audience that no Pod names. Kubernetes calls
// it so: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
const forAudience = "request-serviceaccounts-token-audience"

func (p *Plugin) checkToken(ctx context.Context, node string, a admission.Attributes) error {
	request, ok := a.GetObject().(*authenticationv1.TokenRequest)
	if a.GetSubresource() != "token" || !ok {
		return nil
	}
	if err := checkTokenRequest(request); err != nil {
		return err
	}
	pod, err := p.pod(ctx, a.GetNamespace(), request.Spec.BoundObjectRef.Name)
	if err != nil {
		return err
	}
	if err := checkTokenPod(node, request, pod); err != nil {
		return err
	}
	for _, audience := range request.Spec.Audiences {
		if err := p.checkAudience(ctx, a, pod, audience); err != nil {
			return err
		}
	}
	return nil
}

// checkAudience lets a Node ask for tokens for whom its Pod, a driver of the Pod's volumes or a role names: with others
// it would speak to those in the Pod's name.
func (p *Plugin) checkAudience(ctx context.Context, a admission.Attributes, pod *corev1.Pod, audience string) error {
	if projects(pod, audience) {
		return nil
	}
	drivers, err := p.driversOf(ctx, pod)
	if err != nil {
		return err
	}
	for _, name := range drivers {
		driver, err := p.client.StorageV1().CSIDrivers().Get(ctx, name, metav1.GetOptions{ResourceVersion: "0"})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading the CSIDriver %s: %w", name, err)
		}
		if err == nil && wants(driver, audience) {
			return nil
		}
	}
	right := authorizer.AttributesRecord{User: a.GetUserInfo(), Verb: forAudience, Namespace: a.GetNamespace(),
		Resource: audience, Name: a.GetName(), ResourceRequest: true}
	decision, _, err := p.authorizer.Authorize(ctx, right)
	if err != nil && decision != authorizer.DecisionAllow {
		return fmt.Errorf("asking who may have tokens for the audience %q: %w", audience, err)
	}
	if decision != authorizer.DecisionAllow {
		return fmt.Errorf("spec.audiences: audience %q not found in pod spec volume, %s is not authorized to request "+
			"tokens for this audience", audience, a.GetUserInfo().GetName())
	}
	return nil
}

// driversOf names the drivers of a Pod's volumes, those that it describes and those of its claims.
func (p *Plugin) driversOf(ctx context.Context, pod *corev1.Pod) ([]string, error) {
	drivers := driversInline(pod)
	for _, name := range podview.ClaimNames(pod) {
		claim, err := p.client.CoreV1().PersistentVolumeClaims(pod.Namespace).Get(ctx, name,
			metav1.GetOptions{ResourceVersion: "0"})
		if apierrors.IsNotFound(err) || err == nil && claim.Spec.VolumeName == "" {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the claim %s/%s: %w", pod.Namespace, name, err)
		}
		volume, err := p.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName,
			metav1.GetOptions{ResourceVersion: "0"})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the volume %s: %w", claim.Spec.VolumeName, err)
		}
		if driver, _ := volumename.CSI(volume); driver != "" {
			drivers = append(drivers, driver)
		}
	}
	return drivers, nil
}
