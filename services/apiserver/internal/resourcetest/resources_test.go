package resourcetest

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"keelson.dev/services/apiserver/internal/servertest"
)

// TestResources runs every resource's tests against one server.
func TestResources(t *testing.T) {
	s := servertest.Start(t)
	for name, test := range map[string]func(*testing.T, *servertest.Server){
		"deployments":            testDeployments,
		"deployment scale":       testDeploymentScale,
		"scales":                 testScales,
		"autoscalers":            testAutoscalers,
		"bounds":                 testBounds,
		"largest pod":            testLargestPod,
		"deployment apply":       testDeploymentApply,
		"deployment table":       testDeploymentTable,
		"deployment patches":     testDeploymentPatches,
		"deployment bodies":      testDeploymentBodies,
		"deployment selectors":   testDeploymentSelectors,
		"deployment replaced":    testDeploymentReplaced,
		"deployment table watch": testDeploymentTableWatch,
		"generation":             testGeneration,
		"scale":                  testScale,
		"apply and scale":        testApplyLeavesReplicas,
		"discovery":              testDiscovery,
		"namespaces":             testNamespaces,
		"services":               testServices,
		"service updates":        testServiceUpdates,
		"service dry run":        testServiceDryRun,
		"service refusals":       testServiceRefusals,
		"service status":         testServiceStatus,
		"service addresses":      testServiceAddresses,
		"more service ranges":    testServiceRanges,
		"events":                 testEvents,
		"secrets":                testSecrets,
		"escalation":             testEscalation,
		"priority classes":       testPriorityClasses,
		"limit ranges":           testLimitRange,
		"storage classes":        testStorageClasses,
		"growing claims":         testClaimsGrow,
		"quotas of pods":         testQuotaOfPods,
		"runtime classes":        testRuntimeClass,
		"quotas of scopes":       testQuotaScopes,
		"quotas of objects":      testQuotaOfObjects,
		"quotas of moves":        testQuotaOfMoves,
		"priorities of pods":     testPodPriorities,
		"pods get an account":    testPodAccounts,
		"tokens":                 testTokens,
		"node restriction":       testNodeRestriction,
		"jobs":                   testJobs,
		"cronjobs":               testCronJobs,
		"certificates":           testCertificates,
		"trust bundles":          testTrustBundles,
		"devices":                testDevices,
		"policy authors":         testPolicyAuthors,
		"ingress classes":        testIngressClasses,
		"proxies":                testProxies,
		"topology labels":        testTopologyLabels,
		"refused proxies":        testRefusedProxies,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// impersonate is a client of any user.
func impersonate(t *testing.T, s *servertest.Server, user string, groups ...string) kubernetes.Interface {
	t.Helper()
	config := s.ConfigAs(servertest.Admin)
	config.Impersonate = restclient.ImpersonationConfig{UserName: user, Groups: groups}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	return client
}

// refusedAt wants a 422 that blames the field.
func refusedAt(t *testing.T, err error, field string) {
	t.Helper()
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) {
		t.Errorf("got %v, want a 422 on %s", err, field)
		return
	}
	status = err.(apierrors.APIStatus)
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == field {
			return
		}
	}
	t.Errorf("got %v, want it to blame %s", err, field)
}

// must returns what a call that has to succeed returns.
func must[T any](t *testing.T, what string) func(T, error) T {
	return func(got T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return got
	}
}
