package resource

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Strategy holds the rules for writing one kind of object. Every function is
// pure and may be nil. The order on create is SetRequester, PrepareForCreate,
// PrepareAt, Validate, Warnings, Canonicalize; on update PrepareForUpdate,
// PrepareAt, ValidateUpdate, WarningsOnUpdate, Canonicalize.
type Strategy[O Object] struct {
	// Name says what a valid metadata.name is; nil: a DNS subdomain. The rest
	// of the metadata is checked by the API machinery.
	Name apivalidation.ValidateNameFunc

	// SetRequester writes into a new object which user makes it, whatever the client says about that. Without a user it
	// gets the zero UserInfo.
	SetRequester func(obj O, who authenticationv1.UserInfo)
	// PrepareForCreate drops what a client must not set.
	PrepareForCreate func(obj O)
	// PrepareForUpdate takes what the request must not change from old.
	PrepareForUpdate func(obj, old O)
	// PrepareAt prepares the objects that are to say since when something is so. old is the zero O for a new object.
	PrepareAt func(obj, old O, now metav1.Time)
	// Validate and ValidateUpdate return every violation with its path. Without ValidateUpdate, Validate checks an
	// updated object too.
	Validate       func(obj O) field.ErrorList
	ValidateUpdate func(obj, old O) field.ErrorList
	// Warnings and WarningsOnUpdate are shown to the client that writes.
	Warnings         func(obj O) []string
	WarningsOnUpdate func(obj, old O) []string
	// Canonicalize brings a valid object into the form in which it is stored.
	Canonicalize func(obj O)

	// CreateOnUpdate lets a PUT create the object.
	CreateOnUpdate bool
	// PutOnly lets a subresource be put, and neither read nor patched.
	PutOnly bool
	// RequireResourceVersion refuses updates that name no resourceVersion.
	RequireResourceVersion bool

	// ValidateDelete returns the answer to who may not delete the object, before anything else is asked.
	ValidateDelete func(obj O) error
	// WarningsOnDelete are shown to the client that deletes one object or several.
	WarningsOnDelete func(options *metav1.DeleteOptions) []string
	// Graceful is called before a delete. It returns true, with
	// options.GracePeriodSeconds set, if the object stays for that time.
	Graceful func(obj O, options *metav1.DeleteOptions) bool
	// OrphanDependents is for the kinds whose dependents stay after a delete without a propagation policy.
	OrphanDependents bool

	// ResetFields are the fields that this strategy takes from the stored object, so that no manager comes to own them;
	// for example "spec" or "status.certificate".
	ResetFields []string
}
