package requestbody

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// longestMerge bounds one list that a strategic merge patch merges, and its directives: the library compares each
	// element with every other one.
	longestMerge = 1000
	// mostMerged bounds the elements of all such lists of one patch.
	mostMerged = 5000

	retainKeys      = "$retainKeys"
	elementOrder    = "$setElementOrder/"
	deleteFromPlain = "$deleteFromPrimitiveList/"
)

// merged are the lists that a strategic merge patch merges, and the fields that tell their elements apart; those
// without are lists of plain values. They are the API's patchMergeKey tags, as the test makes sure.
var merged = map[string][]string{
	"addresses":                            {"type"},
	"allocatedResourcesStatus":             {"name"},
	"conditions":                           {"type"},
	"containers":                           {"name"},
	"drivers":                              {"name"},
	"env":                                  {"name"},
	"ephemeralContainers":                  {"name"},
	"evictionResponders":                   {"name"},
	"finalizers":                           {},
	"healthConditions":                     {"status"},
	"hostAliases":                          {"ip"},
	"hostIPs":                              {"ip"},
	"imagePullSecrets":                     {"name"},
	"initContainers":                       {"name"},
	"mapping":                              {"name"},
	"matchConditions":                      {"name"},
	"nodeAllocatableResourceClaimStatuses": {"resourceClaimName"},
	"overhead":                             {"name"},
	"ownerReferences":                      {"uid"},
	"podCIDRs":                             {},
	"podIPs":                               {"ip"},
	"ports":                                {"containerPort", "port"},
	"reservedFor":                          {"uid"},
	"resourceClaimStatuses":                {"name"},
	"resourceClaims":                       {"name"},
	"schedulingGates":                      {"name"},
	"secrets":                              {"name"},
	"storageHealth":                        {"name"},
	"topologySpreadConstraints":            {"topologyKey"},
	"variables":                            {"name"},
	"volumeDevices":                        {"devicePath"},
	"volumeMounts":                         {"mountPath"},
	"volumes":                              {"name"},
	"webhooks":                             {"name"},
}

// checkStrategic refuses a strategic merge patch that the library would work on for seconds or break off at: it
// compares as plain values what a patch may fill with anything. What else is wrong with a patch is the library's to
// say.
func checkStrategic(body []byte) error {
	var patch any
	if json.Unmarshal(body, &patch) != nil {
		return nil
	}
	c := &strategicCheck{}
	return c.value("", patch)
}

type strategicCheck struct{ elements int }

func (c *strategicCheck) value(path string, value any) error {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if err := c.field(path, key, inner); err != nil {
				return err
			}
		}
	case []any:
		for i, inner := range value {
			if err := c.value(element(path, i), inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// field checks one field of an object: a directive, a list that is merged, or anything else.
func (c *strategicCheck) field(path, key string, value any) error {
	at := strings.TrimPrefix(path+"."+key, ".")
	list, _ := value.([]any)
	name, isOrder := strings.CutPrefix(key, elementOrder)
	keys, isMerged := merged[name]
	switch {
	case key == retainKeys || strings.HasPrefix(key, deleteFromPlain) || isOrder && len(keys) == 0:
		return c.plain(at, list)
	case isOrder:
		return c.keyed(at, list, keys)
	case isMerged:
		if err := c.keyed(at, list, keys); err != nil {
			return err
		}
	}
	return c.value(at, value)
}

// plain wants a list of strings, numbers and booleans.
func (c *strategicCheck) plain(path string, list []any) error {
	for i, value := range list {
		if !scalar(value) {
			return apierrors.NewBadRequest(fmt.Sprintf("%s: must be a string, a number or a boolean", element(path, i)))
		}
	}
	return c.count(path, list)
}

// keyed wants the keys of a list's objects to be plain values.
func (c *strategicCheck) keyed(path string, list []any, keys []string) error {
	for i, value := range list {
		object, _ := value.(map[string]any)
		for _, key := range keys {
			if !scalar(object[key]) {
				return apierrors.NewBadRequest(fmt.Sprintf(
					"%s.%s: must be a string or a number, since it tells the elements of the list apart",
					element(path, i), key))
			}
		}
	}
	return c.count(path, list)
}

func (c *strategicCheck) count(path string, list []any) error {
	c.elements += len(list)
	switch {
	case len(list) > longestMerge:
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"%s: a list of a strategic merge patch has at most %d elements, not %d", path, longestMerge, len(list)))
	case c.elements > mostMerged:
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"%s: the lists of a strategic merge patch have at most %d elements in all", path, mostMerged))
	}
	return nil
}

func scalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

func element(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
